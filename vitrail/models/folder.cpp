// Model folders: config.json and model.safetensors, in timm's hub layout or in that of Hugging Face's transformers.
#include "vitrail/models/folder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/family.h"
#include "vitrail/models/huggingface.h"
#include "vitrail/models/mae.h"
#include "vitrail/ops/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

void read_pretrained(io::Fields& f, const PretrainedConfig& defaults, FolderConfig& config) {
  PretrainedConfig& p = config.pretrained;
  p = defaults;
  config.input_size =
      f.optional<std::vector<std::int64_t>>("input_size", {1, 1 << 20}).value_or(std::vector<std::int64_t>());
  check(config.input_size.empty() || config.input_size.size() == 3,
        "{}: 'input_size' is [channels, height, width], not a list of {}", f.source(), config.input_size.size());
  config.fixed_input_size = f.get<bool>("fixed_input_size", true);
  p.interpolation = f.get<std::string>("interpolation", p.interpolation);
  p.crop_pct = f.get<double>("crop_pct", p.crop_pct, {1e-3, 10});
  p.crop_mode = f.get<std::string>("crop_mode", p.crop_mode);
  p.mean = f.get<std::vector<double>>("mean", p.mean);
  p.std = f.get<std::vector<double>>("std", p.std);
  check(!p.mean.empty() && p.mean.size() == p.std.size(), "{}: 'mean' and 'std' have {} and {} numbers", f.source(),
        p.mean.size(), p.std.size());
  if (const auto classes = f.optional<std::int64_t>("num_classes", io::at_least(0)); classes && !config.num_classes) {
    config.num_classes = classes;
  }
  if (f.kind("label_names") == io::Kind::list) {
    p.label_names = f.get<std::vector<std::string>>("label_names");
  }
  // Known to timm and of no use here.
  for (const char* key : {"tag",
                          "url",
                          "file",
                          "state_dict",
                          "hf_hub_id",
                          "hf_hub_filename",
                          "source",
                          "architecture",
                          "custom_load",
                          "test_input_size",
                          "min_input_size",
                          "test_crop_pct",
                          "label_names",
                          "label_offset",
                          "label_descriptions",
                          "pool_size",
                          "test_pool_size",
                          "first_conv",
                          "classifier",
                          "license",
                          "description",
                          "origin_url",
                          "paper_name",
                          "paper_ids",
                          "notes",
                          "global_pool",
                          "num_features",
                          "labels"}) {
    f.ignore(key);
  }
}

// Arguments that timm's JSON has no words for, where save_model() puts them: an object of our own, which timm passes
// over.
constexpr const char* beyond_timm = "vitrail";

bool is_beyond_timm(const std::string& key, const nlohmann::json& value) {
  return (key == "norm_layer" && value.is_array()) ||
         (key == "global_pool" && (value == "sum" || value == "token_avg"));
}

// find_architecture() of the one that a config names.
const ArchitectureEntry& architecture_in(const io::Fields& fields, const std::string& name) {
  try {
    return find_architecture(name);
  } catch (const Error& error) {
    fail("{}: 'architecture': {}", fields.source(), error.what());
  }
}

FolderConfig read_timm_config(const nlohmann::json& json, const fs::path& path) {
  io::Fields f(json, path.string());
  FolderConfig config;
  config.architecture = f.get<std::string>("architecture");
  config.num_classes = f.optional<std::int64_t>("num_classes", io::at_least(0));
  const ArchitectureEntry& entry = architecture_in(f, config.architecture);
  const std::size_t dot = config.architecture.find('.');
  const PretrainedConfig defaults =
      pretrained_of(entry, dot == std::string::npos ? "" : std::string_view(config.architecture).substr(dot + 1));
  if (f.kind("model_args") != io::Kind::absent && f.kind("model_args") != io::Kind::null) {
    f.object("model_args");  // Error unless an object; its keys are the family's to check
    config.model_args = f.raw("model_args");
  }
  if (f.kind(beyond_timm) != io::Kind::absent) {
    f.object(beyond_timm);
    config.model_args.update(f.raw(beyond_timm));
  }
  if (f.kind("pretrained_cfg") == io::Kind::absent) {  // timm's oldest layout has all in one object
    read_pretrained(f, defaults, config);
  } else {
    io::Fields pretrained = f.object("pretrained_cfg");
    read_pretrained(pretrained, defaults, config);
    pretrained.finish();
    if (f.kind("label_names") == io::Kind::list) {
      config.pretrained.label_names = f.get<std::vector<std::string>>("label_names");
    }
    for (const char* key : {"num_features", "global_pool", "label_names", "label_descriptions"}) {
      f.ignore(key);
    }
  }
  f.finish();
  return config;
}

FolderConfig read_config(const fs::path& folder) {
  const fs::path path = folder / config_file;
  check(fs::exists(path), "'{}' is not a model folder: it has no {}", folder.string(), config_file);
  const nlohmann::json json = io::read_json(path);
  return is_hub_config(json) ? read_hub_folder(json, folder) : read_timm_config(json, path);
}

// The arguments that the checkpoint was made with, over the architecture's own.
nlohmann::json checkpoint_arguments(const FolderConfig& config) {
  nlohmann::json arguments = nlohmann::json::object();
  if (!config.input_size.empty()) {
    arguments["in_chans"] = config.input_size[0];
    if (config.fixed_input_size) {
      arguments["img_size"] = {config.input_size[1], config.input_size[2]};
    }
  }
  arguments.update(config.model_args);
  if (config.num_classes) {
    arguments["num_classes"] = *config.num_classes;
  }
  return arguments;
}

std::optional<std::int64_t> whole_number(const nlohmann::json& arguments, const char* key) {
  const auto it = arguments.find(key);
  return it != arguments.end() && it->is_number_integer() ? std::optional(it->get<std::int64_t>()) : std::nullopt;
}

// The picture size that the checkpoint's positions are for, if the config says it.
std::optional<nn::Size2> source_size_of(const FolderConfig& config, const nlohmann::json& arguments) {
  if (const auto side = whole_number(arguments, "img_size")) {
    return nn::Size2{*side, *side};
  }
  const auto it = arguments.find("img_size");
  if (it != arguments.end() && it->is_array() && it->size() == 2 && it->at(0).is_number_integer() &&
      it->at(1).is_number_integer()) {
    return nn::Size2{it->at(0).get<std::int64_t>(), it->at(1).get<std::int64_t>()};
  }
  return config.input_size.size() == 3 ? std::optional(nn::Size2{config.input_size[1], config.input_size[2]})
                                       : std::nullopt;
}

// The linear weights that a file holds in int8, and whether their inputs have a fixed scale.
std::map<std::string, bool, std::less<>> quantized_weights(const io::Safetensors& file) {
  std::map<std::string, bool, std::less<>> result;
  for (const std::string& name : file.names()) {
    if (name.ends_with(".weight") && file.contains(name + "_scale")) {
      result[name] = file.contains(name.substr(0, name.rfind('.')) + ".input_scale");
    }
  }
  return result;
}

// The scales of int8 values must be usual numbers.
void check_scales(const Tensor& scales) {
  for (const float scale : scales.values()) {
    check(std::isnormal(scale) && scale > 0, "it holds {}, which is no scale", scale);
  }
}

// What stands between a checkpoint and a model.
class Problems {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  // Error with the first ten, and how many more there are.
  void raise(const std::string& path) const {
    constexpr std::size_t most = 10;
    if (problems_.size() > most) {
      fail("{} does not fit the model: {}; and {} more", path,
           fmt::join(problems_.begin(), problems_.begin() + most, "; "), problems_.size() - most);
    }
    check(problems_.empty(), "{} does not fit the model: {}", path, fmt::join(problems_, "; "));
  }

 private:
  std::vector<std::string> problems_;
};

// The parameter of the checkpoint's model that `name` takes its value from: itself, or the final norm on the other side
// of the pooling.
std::string source_of(const std::string& name, const ImageModel& net, const io::Safetensors& file,
                      const NameMap& names) {
  const std::string other = name.starts_with("fc_norm.") ? name.substr(3)
                            : name.starts_with("norm.")  ? "fc_" + name
                                                         : "";
  const auto holds = [&](const std::string& own) {
    return names.knows(own) &&
           std::ranges::all_of(names.theirs_of(own), [&](const std::string& theirs) { return file.contains(theirs); });
  };
  return !other.empty() && net.parameters.find(other) == nullptr && !holds(name) && holds(other) ? other : name;
}

// One tensor of the file in the dtype of `parameter`; none, with the problem noted, if it is of another kind.
std::optional<Tensor> find_part(const std::string& name, const nn::Parameter& parameter, const io::Safetensors& file,
                                Problems& problems) {
  const DType wanted = parameter.value.dtype();
  Tensor part;
  try {
    part = file.get(name);
  } catch (const Error& error) {  // of a dtype that there is no tensor of
    problems.add(error.what());
    return std::nullopt;
  }
  if (part.dtype() != wanted && (!is_floating(part.dtype()) || !is_floating(wanted))) {
    problems.add(fmt::format("'{}' holds {}, but the model's is {}", name, name_of(part.dtype()), name_of(wanted)));
    return std::nullopt;
  }
  return part.dtype() == wanted ? part : ops::cast(part, wanted);
}

// The model's tensor `own` from those of the file that make it up; none, with the problems noted, if one is missing or
// does not fit `parameter`.
std::optional<Tensor> find_value(const std::string& own, const nn::Parameter& parameter, const io::Safetensors& file,
                                 const NameMap& names, Problems& problems) {
  std::vector<Tensor> parts;
  const std::vector<std::string> theirs = names.theirs_of(own);
  for (const std::string& name : theirs) {
    if (!file.contains(name)) {
      problems.add(fmt::format("there is no tensor '{}'{}", name, io::did_you_mean(name, file.names())));
      continue;
    }
    if (std::optional<Tensor> part = find_part(name, parameter, file, problems)) {
      parts.push_back(std::move(*part));
    }
  }
  if (parts.size() < theirs.size()) {
    return std::nullopt;
  }
  try {
    return names.join(own, parts);
  } catch (const Error& error) {
    problems.add(
        fmt::format("'{}' cannot be put together from '{}': {}", own, fmt::join(theirs, "', '"), error.what()));
    return std::nullopt;
  }
}

std::vector<std::string> classifier_layers(const ImageModel& net) {
  std::vector<std::string> layers;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    if (net.is_classifier(parameter.name) && std::ranges::find(layers, layer) == layers.end()) {
      layers.push_back(layer);
    }
  }
  return layers;
}

std::string first_conv(const Family& family, const ImageModel& net) {
  std::istringstream names{std::string(family.first_conv)};
  std::string name;
  while (names >> name && net.parameters.find(name + ".weight") == nullptr) {
  }
  return name;
}

// timm has no fixed positions: a table of them is saved as the learned one that it would have there, and is one for
// whoever opens the folder without asking for its pos_embed again.
OrderedJson saved_arguments(const Model& model) {
  const OrderedJson all = OrderedJson::parse(model.model_args);
  OrderedJson arguments = OrderedJson::object();
  for (const auto& [key, value] : all.items()) {
    if (!is_beyond_timm(key, value)) {
      arguments[key] = value;
    }
  }
  const std::string positions = arguments.value("pos_embed", "");
  if (positions.starts_with("sincos") || positions == "fourier") {
    for (const char* key : {"pos_embed", "gsd", "fourier_sigma"}) {
      arguments.erase(key);
    }
  }
  return arguments;
}

OrderedJson config_json(const Model& model) {
  const PretrainedConfig& p = model.pretrained;
  const ArchitectureEntry& entry = find_architecture(model.architecture);
  const std::size_t dot = model.architecture.find('.');
  OrderedJson pretrained;
  if (dot != std::string::npos) {
    pretrained["tag"] = model.architecture.substr(dot + 1);
  }
  pretrained["custom_load"] = false;
  pretrained["input_size"] = {p.channels, p.height, p.width};
  pretrained["fixed_input_size"] = !model.net->takes_any_size();
  pretrained["interpolation"] = p.interpolation;
  pretrained["crop_pct"] = p.crop_pct;
  pretrained["crop_mode"] = p.crop_mode;
  pretrained["mean"] = p.mean;
  pretrained["std"] = p.std;
  pretrained["num_classes"] = model.net->num_classes();
  pretrained["pool_size"] = nullptr;
  pretrained["first_conv"] = first_conv(*entry.family, *model.net);
  const std::vector<std::string> classifiers = classifier_layers(*model.net);
  if (classifiers.size() == 1) {
    pretrained["classifier"] = classifiers.front();
  } else if (!classifiers.empty()) {
    pretrained["classifier"] = classifiers;
  }
  OrderedJson config;
  config["architecture"] = entry.name;
  config["num_classes"] = model.net->num_classes();
  config["num_features"] = model.net->num_features();
  config["pretrained_cfg"] = pretrained;
  config["model_args"] = saved_arguments(model);
  const OrderedJson all = OrderedJson::parse(model.model_args);
  for (const auto& [key, value] : all.items()) {
    if (is_beyond_timm(key, value)) {
      config[beyond_timm][key] = value;
    }
  }
  if (!p.label_names.empty()) {
    config["label_names"] = p.label_names;
  }
  return config;
}

}  // namespace

NameMap names_in(const io::Safetensors& file, std::span<const NameRule> rules, const std::string& prefix) {
  const auto any = [&](const std::string& start) {
    return std::ranges::any_of(file.names(), [&](const std::string& name) { return name.starts_with(start); });
  };
  const std::string written_by_version_5 = "decoder.decoder_encoder.layer.";
  return {rules, any(prefix) ? prefix : "",
          any(written_by_version_5) ? written_by_version_5 : "decoder.decoder_layers."};
}

io::Safetensors open_weights(const fs::path& folder) {
  if (!fs::exists(folder / weights_file)) {
    check(!fs::exists(folder / "model.safetensors.index.json"),
          "'{}' has its weights in several files: join them with save_pretrained(…, max_shard_size=\"100GB\")",
          folder.string());
    for (const char* pickled : {"pytorch_model.bin", "tf_model.h5", "flax_model.msgpack"}) {
      check(!fs::exists(folder / pickled),
            "'{}' has its weights in {}: vitrail reads {}, which save_pretrained() writes", folder.string(), pickled,
            weights_file);
    }
  }
  return io::Safetensors::open(folder / weights_file);
}

void load_weights(ImageModel& net, const io::Safetensors& file, const NameMap& names, const nn::Size2& source_size,
                  const Changes& changes) {
  const std::string& path = file.source();
  Problems problems;
  std::vector<std::pair<const nn::Parameter*, Tensor>> values;
  std::set<std::string, std::less<>> used;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    const std::string& name = parameter.name;
    if (changes.classifier && net.is_classifier(name)) {
      check(parameter.value.dtype() != DType::i8, "{}: the classifier is in int8 and cannot be replaced", path);
      continue;
    }
    const std::string source = changes.pooling ? source_of(name, net, file, names) : name;
    const std::vector<std::string> theirs = names.theirs_of(source);
    used.insert(theirs.begin(), theirs.end());
    const std::optional<Tensor> value = find_value(source, parameter, file, names, problems);
    if (!value) {
      continue;
    }
    try {
      const Tensor adapted = net.adapt(name, *value, source_size);
      if (adapted.shape() != parameter.value.shape()) {
        problems.add(fmt::format("'{}' has the shape {}, but the model's is {}", fmt::join(theirs, "' + '"),
                                 value->shape(), parameter.value.shape()));
        continue;
      }
      if (name.ends_with("_scale") && parameter.buffer) {
        check_scales(adapted);
      }
      values.emplace_back(&parameter, adapted);
    } catch (const Error& error) {
      problems.add(fmt::format("'{}' cannot be taken: {}", fmt::join(theirs, "' + '"), error.what()));
    }
  }
  for (const std::string& name : file.names()) {
    if (used.contains(name)) {
      continue;
    }
    const std::optional<std::string> own = names.own_of(name);
    const bool passed_over = own && (own->empty() || (changes.classifier && net.is_classifier(*own)));
    if (!passed_over) {
      problems.add(fmt::format("the model has no parameter '{}'", name));
    }
  }
  problems.raise(path);
  for (const auto& [parameter, value] : values) {
    parameter->value.copy_from(value);
    parameter->value.touch();
  }
  for (const nn::Parameter& parameter : net.parameters.all()) {
    if (changes.classifier && net.is_classifier(parameter.name)) {
      net.parameters.initialize(parameter.name);
    }
  }
}

Model load_model(const fs::path& folder, const CreateOptions& options) {
  check(fs::is_directory(folder), "there is no model folder '{}'", folder.string());
  const FolderConfig config = read_config(folder);
  const nlohmann::json made_with = checkpoint_arguments(config);
  nlohmann::json arguments = made_with;
  const nlohmann::json asked = option_arguments(options);
  arguments.update(asked);
  const bool shapes_only = options.fill == nn::Fill::shapes_only;
  std::optional<io::Safetensors> file;
  if (!shapes_only || fs::exists(folder / weights_file)) {
    file = open_weights(folder);
  }
  nn::StoreOptions store = {options.seed, shapes_only ? nn::Fill::shapes_only : nn::Fill::leave};
  if (file && config.names.empty()) {
    store.quantized = quantized_weights(*file);
  }
  Model model = build_model(config.architecture, arguments, (folder / config_file).string() + ": model_args", store);
  PretrainedConfig built = model.pretrained;  // picture size and channels as the arguments have them
  // A model for any size takes pictures of the size that the config advises, if none was asked for.
  if (model.net->takes_any_size() && config.input_size.size() == 3 && !asked.contains("img_size")) {
    built.height = config.input_size[1];
    built.width = config.input_size[2];
  }
  model.pretrained = config.pretrained;
  model.pretrained.height = built.height;
  model.pretrained.width = built.width;
  model.pretrained.channels = built.channels;
  if (model.pretrained.mean.size() != static_cast<std::size_t>(built.channels)) {
    model.pretrained.mean = built.mean;
    model.pretrained.std = built.std;
  }
  const std::int64_t source_classes = whole_number(made_with, "num_classes").value_or(model.net->num_classes());
  const Changes changes{.classifier = source_classes != model.net->num_classes(),
                        .pooling = asked.contains("global_pool") || asked.contains("fc_norm")};
  if (changes.classifier) {
    model.pretrained.label_names.clear();
  }
  if (!shapes_only) {
    const nn::Size2 source_size = source_size_of(config, made_with).value_or(nn::Size2{built.height, built.width});
    check(std::ranges::all_of(source_size, [](std::int64_t side) { return side > 0 && side <= 1 << 20; }),
          "{}: 'img_size' lies from 1 to {}, not {}x{}", (folder / config_file).string(), 1 << 20, source_size[0],
          source_size[1]);
    load_weights(*model.net, *file, names_in(*file, config.names, config.prefix), source_size, changes);
  }
  return model;
}

Model open_model(const std::string& name_or_folder, const CreateOptions& options) {
  constexpr std::string_view prefix = "local-dir:";  // timm's way to name a folder
  const bool prefixed = name_or_folder.starts_with(prefix);
  const fs::path folder = prefixed ? name_or_folder.substr(prefix.size()) : name_or_folder;
  if (prefixed || fs::is_directory(folder)) {
    return load_model(folder, options);
  }
  check(!fs::exists(folder), "'{}' is a file: a model is given by its name or by its folder", name_or_folder);
  check(name_or_folder.find('/') == std::string::npos, "there is no model folder '{}'", name_or_folder);
  return create_model(name_or_folder, options);
}

void save_model(const Model& model, const fs::path& folder, Layout layout) {
  if (layout == Layout::huggingface || is_masked_autoencoder(model)) {
    write_hub_files(hub_files(model), folder);
    return;
  }
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    tensors.emplace_back(parameter.name, parameter.value);
  }
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, config_json(model).dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, tensors);
  });
}

}  // namespace vitrail::models
