#include "vitrail/models/detection/detr_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* detr_type = "detr";
constexpr const char* preprocessor_file = "preprocessor_config.json";
constexpr const char* kwargs_key = "backbone_kwargs";
constexpr const char* ids_key = "category_ids";

// The names of a file are the model's own; transformers' frozen batch norms do not count their batches.
constexpr std::array<NameRule, 5> detr_names = {{
    {"model.backbone.conv_encoder.model.bn1.num_batches_tracked",
     "model.backbone.conv_encoder.model.bn1.num_batches_tracked", Joining::rows, true},
    {"model.backbone.conv_encoder.model.conv1.#.num_batches_tracked",
     "model.backbone.conv_encoder.model.conv1.#.num_batches_tracked", Joining::rows, true},
    {"model.backbone.conv_encoder.model.layer#.#.bn#.num_batches_tracked",
     "model.backbone.conv_encoder.model.layer#.#.bn#.num_batches_tracked", Joining::rows, true},
    {"model.backbone.conv_encoder.model.layer#.#.downsample.#.num_batches_tracked",
     "model.backbone.conv_encoder.model.layer#.#.downsample.#.num_batches_tracked", Joining::rows, true},
    {"@", "@"},
}};

// The ResNet of timm's that a config names, with the arguments that it changes.
ResNetConfig read_backbone(io::Fields& f) {
  std::string name = "resnet50";
  Json arguments = Json::object();
  if (f.kind("backbone_config") == io::Kind::object) {
    io::Fields of_backbone = f.object("backbone_config");
    const auto type = of_backbone.get<std::string>("model_type", "");
    check(type == "timm_backbone",
          "{}: the backbone is of transformers' kind '{}'; vitrail reads detectors with a ResNet of timm's "
          "('timm_backbone')",
          f.source(), type);
    name = of_backbone.get<std::string>("backbone", name);
    if (const auto stride = of_backbone.optional<std::int64_t>("output_stride")) {
      arguments["output_stride"] = *stride;
    }
  } else {
    check(f.get<bool>("use_timm_backbone", true),
          "{}: the backbone is none of timm's ('use_timm_backbone' is false); vitrail reads detectors with a ResNet of "
          "timm's",
          f.source());
    name = f.optional<std::string>("backbone").value_or(name);
  }
  if (f.get<bool>("dilation", false) && !arguments.contains("output_stride")) {
    arguments["output_stride"] = 16;
  }
  arguments["in_chans"] = f.get<std::int64_t>("num_channels", 3, positive);
  if (f.kind(own_object) == io::Kind::object) {
    io::Fields own = f.object(own_object);
    if (own.kind(kwargs_key) == io::Kind::object) {
      arguments.update(own.raw(kwargs_key));
    }
  }
  const std::string base = name.substr(0, name.find('.'));
  const ArchitectureEntry& entry = find_architecture(base);
  check(entry.family->name == "resnet", "{}: the backbone '{}' is none of timm's ResNets", f.source(), name);
  Json all = default_arguments(entry, "");
  all.update(arguments);
  all["num_classes"] = 0;
  return read_resnet(all, f.source() + ": backbone '" + name + "'");
}

DetrConfig read_detr(io::Fields& f) {
  DetrConfig c;
  c.backbone = read_backbone(f);
  const auto count = [&](const char* key, std::int64_t fallback) {
    return f.get<std::int64_t>(key, fallback, positive);
  };
  c.d_model = count("d_model", c.d_model);
  c.encoder_layers = f.get<std::int64_t>("encoder_layers", c.encoder_layers, {0, most_layers.high});
  c.decoder_layers = f.get<std::int64_t>("decoder_layers", c.decoder_layers, most_layers);
  c.encoder_attention_heads = count("encoder_attention_heads", c.encoder_attention_heads);
  c.decoder_attention_heads = count("decoder_attention_heads", c.decoder_attention_heads);
  c.encoder_ffn_dim = count("encoder_ffn_dim", c.encoder_ffn_dim);
  c.decoder_ffn_dim = count("decoder_ffn_dim", c.decoder_ffn_dim);
  c.activation = ops::activation_named(timm_activation(f, "activation_function", "relu"));
  c.num_queries = count("num_queries", c.num_queries);
  c.positions = f.choice("position_embedding_type", "sine", {"sine", "learned"}) == "sine"
                    ? DetrConfig::Positions::sine
                    : DetrConfig::Positions::learned;
  const auto rate = [&](const char* key, double fallback) {
    return static_cast<float>(f.get<double>(key, fallback, {0, 1}));
  };
  c.dropout = rate("dropout", 0.1);
  c.attention_dropout = rate("attention_dropout", 0);
  c.activation_dropout = rate("activation_dropout", 0);
  c.auxiliary_loss = f.optional<bool>("auxiliary_loss").value_or(false);
  return c;
}

// The fields that a new detector may be given.
const std::vector<std::string>& config_fields() {
  static const std::vector<std::string> all = {"num_channels",
                                               "dilation",
                                               "d_model",
                                               "encoder_layers",
                                               "decoder_layers",
                                               "encoder_ffn_dim",
                                               "decoder_ffn_dim",
                                               "num_queries",
                                               "encoder_attention_heads",
                                               "dropout",
                                               "attention_dropout",
                                               "activation_dropout",
                                               "decoder_attention_heads",
                                               "activation_function",
                                               "position_embedding_type",
                                               "backbone",
                                               kwargs_key};
  return all;
}

bool is_config_field(const std::string& key) {
  return std::ranges::find(config_fields(), key) != config_fields().end();
}

bool is_detr(const Json& json) { return is_hub_config(json) && json["model_type"] == detr_type; }

constexpr std::int64_t bilinear = 2;  // Pillow's number of it

// How images are prepared, as transformers' image processors of several versions have it.
void read_images(const fs::path& folder, DetectorImages& images) {
  const fs::path path = folder / preprocessor_file;
  if (!fs::exists(path)) {
    return;
  }
  const Json json = io::read_json(path);
  io::Fields f(json, path.string());
  if (f.kind("size") == io::Kind::object) {
    io::Fields size = f.object("size");
    check(size.kind("shortest_edge") != io::Kind::absent,
          "{}: 'size' has no 'shortest_edge': images of a detector keep their shape", f.source());
    images.shortest_edge = size.get<std::int64_t>("shortest_edge", positive);
    images.longest_edge = size.get<std::int64_t>("longest_edge", largest_size, positive);
  } else {
    images.shortest_edge = f.get<std::int64_t>("size", images.shortest_edge, positive);
    images.longest_edge = f.get<std::int64_t>("max_size", images.longest_edge, positive);
  }
  const auto of_channels = [&](const char* key, const std::vector<float>& fallback) {
    const std::vector<double> given(fallback.begin(), fallback.end());
    const auto values = f.get<std::vector<double>>(key, given, {-1e3, 1e3});
    check(values.size() == fallback.size(), "{}: '{}' has {} numbers, expected {}", f.source(), key, values.size(),
          fallback.size());
    return std::vector<float>(values.begin(), values.end());
  };
  images.mean = of_channels("image_mean", images.mean);
  images.std = of_channels("image_std", images.std);
  check(std::ranges::min(images.std) > 0, "{}: 'image_std' must be above 0", f.source());
  check(f.optional<bool>("do_resize").value_or(true), "{}: a detector's images are resized: 'do_resize' must be true",
        f.source());
  check(f.optional<std::int64_t>("resample").value_or(bilinear) == bilinear,
        "{}: a detector's images are resized bilinearly: 'resample' must be {}", f.source(), bilinear);
  check(f.is_unset("pad_size"), "{}: images are filled up to the largest of a batch: 'pad_size' must be null",
        f.source());
  if (!f.optional<bool>("do_normalize").value_or(true)) {
    std::ranges::fill(images.mean, 0.0F);
    std::ranges::fill(images.std, 1.0F);
  }
  // Pixels are taken from 0 to 1: another factor is one of mean and deviation.
  const double factor = f.optional<bool>("do_rescale").value_or(true)
                            ? f.optional<double>("rescale_factor", {1e-9, 1e3}).value_or(1.0 / 255)
                            : 1;
  if (std::abs(factor * 255 - 1) > 1e-6) {
    const auto divide = [&](float& number) { number = static_cast<float>(number / (factor * 255)); };
    std::ranges::for_each(images.mean, divide);
    std::ranges::for_each(images.std, divide);
  }
}

OrderedJson images_json(const DetectorImages& images) {
  const auto shortest_of = [](const std::vector<float>& values) {
    std::vector<double> result(values.size());
    std::ranges::transform(values, result.begin(), shortest);
    return result;
  };
  return {{"image_processor_type", "DetrImageProcessor"},
          {"format", "coco_detection"},
          {"do_resize", true},
          {"size", {{"shortest_edge", images.shortest_edge}, {"longest_edge", images.longest_edge}}},
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"image_mean", shortest_of(images.mean)},
          {"image_std", shortest_of(images.std)},
          {"do_pad", true}};
}

std::vector<std::int64_t> read_category_ids(io::Fields& f, std::size_t classes) {
  if (f.kind(own_object) != io::Kind::object) {
    return {};
  }
  io::Fields own = f.object(own_object);
  if (own.kind(ids_key) == io::Kind::absent) {
    return {};
  }
  std::vector<std::int64_t> ids = own.get<std::vector<std::int64_t>>(ids_key, {0, 1e15});
  check(ids.empty() || ids.size() == classes, "{}: '{}' has {}, but there are {}", own.source(), ids_key,
        io::counted(std::ssize(ids), "ids"), io::counted(static_cast<std::int64_t>(classes), "classes"));
  return ids;
}

Detector make_detector(const Json& json, const std::string& source, const std::vector<std::string>& labels,
                       const nn::StoreOptions& store) {
  io::Fields f(json, source);
  DetrConfig config = read_detr(f);
  Detector detector;
  const std::vector<std::string> own = read_class_names(f);
  detector.labels = labels.empty() ? own : labels;
  if (detector.labels == own) {
    detector.category_ids = read_category_ids(f, own.size());
  }
  config.num_labels = std::ssize(detector.labels);
  detector.net = std::make_unique<Detr>(config, store);
  detector.config = json.dump();
  return detector;
}

// Gives the classifier of the queries the rows of its labels in a file whose labels are `own`, and that of "nothing".
// Returns whether the file has all of them.
bool take_rows(const Detector& detector, const io::StoredTensors& file, const std::vector<std::string>& own) {
  std::vector<std::int64_t> rows;
  for (const std::string& label : detector.labels) {
    rows.push_back(std::ranges::find(own, label) - own.begin());
    if (rows.back() == std::ssize(own)) {
      return false;
    }
  }
  rows.push_back(std::ssize(own));
  const Tensor index = Tensor::from(rows, {std::ssize(rows)});
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    if (detector.net->is_head(parameter.name)) {
      detector.net->parameters.set(parameter,
                                   ops::index_select(ops::cast(file.get(parameter.name), DType::f32), 0, index));
    }
  }
  return true;
}

// A detector that has a name: what its config.json says beside transformers' defaults, which are those of
// detr-resnet-50.
struct NamedDetector {
  std::string name;
  Json config;
  DetectorImages images = {};
};

const std::vector<NamedDetector>& named_detectors() {
  static const std::vector<NamedDetector> all = [] {
    std::vector<NamedDetector> result;
    result.reserve(9);
    for (const char* backbone : {"resnet18", "resnet34", "resnet50", "resnet101"}) {
      result.push_back({fmt::format("detr_{}", backbone), {{"backbone", backbone}}});
      result.push_back({fmt::format("detr_{}_dc5", backbone), {{"backbone", backbone}, {"dilation", true}}});
    }
    const Json small_resnet = {{"layers", {1, 1, 1}},
                               {"channels", {32, 64, 128}},
                               {"output_stride", 8},
                               {"stem_type", "deep"},
                               {"stem_width", 32}};
    result.push_back({"detr_scenes",
                      {{"backbone", "resnet18"},
                       {own_object, {{kwargs_key, small_resnet}}},
                       {"d_model", 128},
                       {"encoder_layers", 3},
                       {"decoder_layers", 3},
                       {"encoder_ffn_dim", 512},
                       {"decoder_ffn_dim", 512},
                       {"num_queries", 16},
                       {"dropout", 0}},
                      {.shortest_edge = 64, .longest_edge = 128}});
    return result;
  }();
  return all;
}

const NamedDetector& named_detector(const std::string& name) {
  const auto it = std::ranges::find(named_detectors(), name, &NamedDetector::name);
  if (it == named_detectors().end()) {
    const std::vector<std::string> names = detector_names();
    fail("there is no detector '{}'{}: expected a folder or one of {}", name, io::did_you_mean(name, names),
         fmt::join(names, ", "));
  }
  return *it;
}

}  // namespace

std::int64_t category_id_of(const Detector& detector, std::int64_t label) {
  return detector.category_ids.empty() ? label : detector.category_ids[static_cast<std::size_t>(label)];
}

bool is_detector_folder(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  return fs::exists(folder / config_file) && is_detr(io::read_json(folder / config_file));
}

Detector load_detector(const fs::path& given, const DetectorOptions& options) {
  const fs::path folder = shipped_or(given);
  const fs::path path = folder / config_file;
  Json json = read_config(folder);
  check(is_detr(json), "'{}' is no detector: the \"model_type\" in its {} is not '{}'", folder.string(), config_file,
        detr_type);
  const bool drops = options.learns && json.contains("auxiliary_loss") && json["auxiliary_loss"] == true;
  if (drops) {
    json["auxiliary_loss"] = false;
  }
  io::Fields f(json, path.string());
  const std::vector<std::string> own = read_class_names(f);
  const bool renewed = !options.labels.empty() && options.labels != own;
  Detector detector =
      make_detector(json, path.string(), options.labels,
                    {.seed = options.seed, .fill = options.fill == nn::Fill::meta ? nn::Fill::meta : nn::Fill::leave});
  detector.classifier = renewed ? Classifier::renewed : Classifier::kept;
  detector.drops_auxiliary_loss = drops;
  read_images(folder, detector.images);
  if (options.fill != nn::Fill::meta) {
    const WeightsTarget target{.parameters = detector.net->parameters,
                               .prefix = "",
                               .is_head = [&](const std::string& name) { return detector.net->is_head(name); },
                               .adapt = {}};
    const io::StoredTensors file = open_weights(folder);
    load_weights(target, file, {detr_names, ""}, {}, {.classifier = renewed});
    if (renewed && take_rows(detector, file, own)) {
      detector.classifier = Classifier::by_names;
    }
  }
  return detector;
}

std::vector<std::string> detector_names() {
  std::vector<std::string> names;
  for (const NamedDetector& detector : named_detectors()) {
    names.push_back(detector.name);
  }
  return names;
}

bool is_detector_name(const std::string& name) {
  return std::ranges::find(named_detectors(), name, &NamedDetector::name) != named_detectors().end();
}

Detector create_detector(const std::string& name, const DetectorOptions& options, const std::string& kwargs) {
  const NamedDetector& named = named_detector(name);
  Json config = named.config;
  Json given = Json::parse(kwargs);
  if (given.contains(kwargs_key)) {
    check(given[kwargs_key].is_object(), "'{}' must be an object, such as {{\"channels\": [32, 64, 128]}}, but is {}",
          kwargs_key, io::shown(given[kwargs_key].dump()));
    config[own_object][kwargs_key].update(given[kwargs_key]);
    given.erase(kwargs_key);
  }
  for (const auto& [key, value] : given.items()) {
    check(is_config_field(key), "there is no '{}' in transformers' config of a detector{}", key,
          io::did_you_mean(key, config_fields()));
    config[key] = value;
  }
  Detector detector = make_detector(config, name, options.labels, {.seed = options.seed, .fill = options.fill});
  detector.images = named.images;
  return detector;
}

void take_backbone(const Detector& detector, const Model& given) {
  const std::string prefix = "model.backbone.conv_encoder.model.";
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    if (!parameter.name.starts_with(prefix)) {
      continue;
    }
    const std::string name = parameter.name.substr(prefix.size());
    const nn::Parameter* const theirs = given.net->parameters.find(name);
    check(theirs != nullptr, "{} does not fit the detector's backbone: it has no '{}'", given.architecture, name);
    check(theirs->value.shape() == parameter.value.shape(),
          "{} does not fit the detector's backbone: its '{}' has the shape {}, expected {}", given.architecture, name,
          theirs->value.shape(), parameter.value.shape());
    detector.net->parameters.set(parameter, theirs->value);
  }
}

void write_detector(const Detector& detector, const fs::path& folder, DType dtype) {
  OrderedJson config = {{"architectures", {"DetrForObjectDetection"}}, {"model_type", detr_type}};
  OrderedJson given = OrderedJson::parse(detector.config);
  if (!given.contains("backbone_config")) {  // the older form, and vitrail's own
    const bool named = given.contains("backbone") && given["backbone"].is_string();  // or null
    OrderedJson backbone = {{"model_type", "timm_backbone"},
                            {"backbone", named ? given["backbone"] : OrderedJson("resnet50")},
                            {"num_channels", given.value("num_channels", 3)},
                            {"features_only", true},
                            {"use_pretrained_backbone", false},
                            {"out_indices", {1, 2, 3, 4}}};
    if (given.value("dilation", false)) {
      backbone["output_stride"] = 16;
    }
    given["backbone_config"] = std::move(backbone);
  }
  for (const char* older : {"backbone", "use_timm_backbone", "use_pretrained_backbone", "torch_dtype", kwargs_key}) {
    given.erase(older);
  }
  config.update(given);
  config["dtype"] = dtype == DType::bf16 ? "bfloat16" : "float32";
  config["id2label"] = OrderedJson::object();
  config["label2id"] = OrderedJson::object();
  for (std::size_t i = 0; i < detector.labels.size(); ++i) {
    config["id2label"][std::to_string(i)] = detector.labels[i];
    config["label2id"][detector.labels[i]] = i;
  }
  if (config.contains(own_object)) {
    config[own_object].erase(ids_key);
  }
  if (!detector.category_ids.empty()) {
    config[own_object][ids_key] = detector.category_ids;
  }
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    // transformers' frozen norms count no batches; those that were trained have counted some.
    const bool counts = parameter.name.ends_with(".num_batches_tracked");
    if (!counts || parameter.value.span<std::int64_t>()[0] > 0) {
      tensors.emplace_back(parameter.name, parameter.value.detach());
    }
  }
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::write_atomically(folder / preprocessor_file, images_json(detector.images).dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(std::move(tensors), dtype));
}

}  // namespace vitrail::models
