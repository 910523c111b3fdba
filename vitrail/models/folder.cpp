// Model folders: config.json and weights, in timm's hub layout or in that of Hugging Face's transformers.
#include "vitrail/models/folder.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/model.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

void read_pretrained(io::Fields& f, FolderConfig& config) {
  PretrainedConfig& p = config.pretrained;
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
  // timm knows these fields; they are of no use here.
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

// save_model() writes arguments that timm does not take, or that its JSON cannot express, and a preparation of images
// that it does not know, into own_object.
constexpr const char* processor_key = "image_processor";
constexpr const char* bottleneck_key = "bottleneck";

bool is_beyond_timm(const Family& family, const std::string& key, const nlohmann::json& value) {
  const std::vector<std::string> names = words(std::string(family.beyond_timm));
  return std::ranges::find(names, key) != names.end() || (key == "norm_layer" && value.is_array()) ||
         (key == "global_pool" && (value == "sum" || value == "token_avg"));
}

// The architecture of images of that name in a config; an Error names the config, and similar names of all kinds.
const ArchitectureEntry& architecture_in(const io::Fields& fields, const std::string& name) {
  try {
    check_architecture(name);
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
  config.pretrained =
      pretrained_of(entry, dot == std::string::npos ? "" : std::string_view(config.architecture).substr(dot + 1));
  if (f.kind("model_args") != io::Kind::absent && f.kind("model_args") != io::Kind::null) {
    f.object("model_args");  // throws Error unless it is an object; the family checks its keys
    config.model_args = f.raw("model_args");
  }
  if (f.kind(own_object) != io::Kind::absent) {
    io::Fields beyond = f.object(own_object);
    nlohmann::json arguments = f.raw(own_object);
    if (beyond.kind(processor_key) != io::Kind::absent) {
      beyond.object(processor_key);
      config.pretrained.processor = read_processor(beyond.raw(processor_key), path.string());
      arguments.erase(processor_key);
    }
    config.pretrained.bottleneck = beyond.get<bool>(bottleneck_key, false);
    config.pretrained.problem_type = read_problem_type(beyond);
    for (const char* key : {bottleneck_key, problem_type_field}) {
      arguments.erase(key);
    }
    config.model_args.update(arguments);
  }
  if (f.kind("pretrained_cfg") == io::Kind::absent) {  // timm's oldest layout has all in one object
    read_pretrained(f, config);
  } else {
    io::Fields pretrained = f.object("pretrained_cfg");
    read_pretrained(pretrained, config);
    pretrained.finish();
    if (f.kind("label_names") == io::Kind::list) {
      config.pretrained.label_names = f.get<std::vector<std::string>>("label_names");
    }
    for (const char* key : {"num_features", "global_pool", "label_names", "label_descriptions"}) {
      f.ignore(key);
    }
  }
  f.finish();
  const auto names = std::ssize(config.pretrained.label_names);
  check(names == 0 || !config.num_classes || names == *config.num_classes,
        "{}: 'label_names' has {}, but 'num_classes' is {}", path.string(), io::counted(names, "names"),
        config.num_classes.value_or(0));
  return config;
}

std::optional<std::int64_t> whole_number(const nlohmann::json& arguments, const char* key) {
  const auto it = arguments.find(key);
  return it != arguments.end() && it->is_number_integer() ? std::optional(it->get<std::int64_t>()) : std::nullopt;
}

// The image size that the position embeddings of the checkpoint are for, if the config says it.
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

std::vector<std::string> classifier_layers(const ImageModel& net) {
  std::vector<std::string> layers;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    if (net.is_head(parameter.name) && std::ranges::find(layers, layer) == layers.end()) {
      layers.push_back(layer);
    }
  }
  return layers;
}

std::string first_conv(const Family& family, const ImageModel& net) {
  std::string name;
  for (const std::string& candidate : words(std::string(family.first_conv))) {
    name = candidate;
    if (net.parameters.find(name + ".weight") != nullptr) {
      break;
    }
  }
  return name;
}

// timm has no fixed position embeddings: a fixed table is saved as the learned one that timm would have in its place,
// and is loaded as a learned one unless pos_embed is given again.
OrderedJson saved_arguments(const Model& model) {
  const OrderedJson all = OrderedJson::parse(model.model_args);
  OrderedJson arguments = OrderedJson::object();
  for (const auto& [key, value] : all.items()) {
    if (!is_beyond_timm(*model.family, key, value)) {
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
  for (const std::string& key : arguments_beyond_timm(model)) {
    config[own_object][key] = all[key];
  }
  if (p.processor) {
    config[own_object][processor_key] = processor_json(*p.processor);
  }
  if (p.bottleneck) {
    config[own_object][bottleneck_key] = true;
  }
  if (p.problem_type != ProblemType::single_label_classification) {
    config[own_object][problem_type_field] = name_of(p.problem_type);
  }
  if (!p.label_names.empty()) {
    config["label_names"] = p.label_names;
  }
  return config;
}

}  // namespace

std::vector<std::string> arguments_beyond_timm(const Model& model) {
  std::vector<std::string> names;
  const OrderedJson all = OrderedJson::parse(model.model_args);
  for (const auto& [key, value] : all.items()) {
    if (is_beyond_timm(*model.family, key, value)) {
      names.push_back(key);
    }
  }
  return names;
}

std::vector<std::string> arguments_refused_by_timm(const Model& model) {
  constexpr std::array of_images = {"img_size",    "in_chans",  "num_classes",
                                    "global_pool", "drop_rate", "drop_path_rate"};
  const bool is_bit = model.architecture.substr(0, model.architecture.find('.')).ends_with("_bit");
  const TimmTakes takes = is_bit ? TimmTakes::not_of_table : model.family->timm_takes;
  if (takes == TimmTakes::all) {
    return {};
  }
  const nlohmann::json own = default_arguments(find_architecture(model.architecture), "");
  std::vector<std::string> refused;
  const OrderedJson all = OrderedJson::parse(model.model_args);
  for (const auto& [key, value] : all.items()) {
    const bool of_image = std::ranges::find(of_images, key) != of_images.end();
    if (!of_image && (takes == TimmTakes::of_images || (takes == TimmTakes::not_of_table && own.contains(key)))) {
      refused.push_back(key);
    }
  }
  return refused;
}

FolderConfig read_folder(const fs::path& folder) {
  const nlohmann::json json = read_config(folder);
  if (!is_hub_config(json)) {
    return read_timm_config(json, folder / config_file);
  }
  check_has_image_model(folder.string());
  return read_hub_folder(json, folder);
}

void load_weights(const WeightsTarget& target, const fs::path& folder, bool fresh_head) {
  const FolderConfig config = read_folder(folder);
  const io::StoredTensors file = open_weights(folder);
  const nn::Size2 unknown = {config.pretrained.height, config.pretrained.width};
  const nn::Size2 source_size = source_size_of(config, config.arguments()).value_or(unknown);
  load_weights(target, file, names_in(file, config.names, config.prefix), source_size, {.classifier = fresh_head});
}

Model create_model(const std::string& name, const CreateOptions& options) { return build_model(name, options); }

Model describe_model(const std::string& name, CreateOptions options) {
  options.fill = nn::Fill::meta;
  return build_model(name, options);
}

Model load_model(const fs::path& given, const CreateOptions& options) {
  const fs::path folder = shipped_or(given);
  const FolderConfig config = read_folder(folder);
  const nlohmann::json made_with = config.arguments();
  nlohmann::json arguments = made_with;
  const nlohmann::json asked = option_arguments(options);
  arguments.update(asked);
  const bool meta = options.fill == nn::Fill::meta;
  std::optional<io::StoredTensors> file;
  if (!meta || !weights_in(folder).empty()) {
    file = open_weights(folder);
  }
  nn::StoreOptions store = {options.seed, meta ? nn::Fill::meta : nn::Fill::leave};
  if (file && config.names.empty()) {
    store.held = quantized_weights(*file);
  }
  const std::string source = (folder / config_file).string() + ": model_args";
  Model model =
      build_model(config.architecture, arguments, asked.empty() ? source : source + " with --model-kwargs", store);
  keep_drop_rates(model, made_with);
  PretrainedConfig built = model.pretrained;  // with the image size and channels of the arguments
  // If the model takes images of any size and the caller asked for none, the config's size is the one for its images.
  if (model.net->takes_any_size() && config.input_size.size() == 3 && !asked.contains("img_size")) {
    built.height = config.input_size[1];
    built.width = config.input_size[2];
  }
  if (!config.names.empty() && !model.net->takes_any_size() && !asked.contains("img_size")) {
    check_prepared_size(folder, config.pretrained, {built.height, built.width});
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
    model.pretrained.forget_classes();
  }
  if (!meta) {
    const nn::Size2 source_size = source_size_of(config, made_with).value_or(nn::Size2{built.height, built.width});
    check(std::ranges::all_of(source_size, [](std::int64_t side) { return side > 0 && side <= 1 << 20; }),
          "{}: 'img_size' lies from 1 to {}, not {}x{}", (folder / config_file).string(), 1 << 20, source_size[0],
          source_size[1]);
    load_weights(weights_of(*model.net, model.net->parameters), *file, names_in(*file, config.names, config.prefix),
                 source_size, changes);
  }
  return model;
}

namespace {

constexpr std::string_view local_prefix = "local-dir:";  // timm's way to name a folder

}  // namespace

bool names_folder(const std::string& name_or_folder) {
  return name_or_folder.starts_with(local_prefix) || is_shipped_name(name_or_folder) ||
         fs::is_directory(name_or_folder);
}

Model open_model(const std::string& name_or_folder, const CreateOptions& options) {
  const bool prefixed = name_or_folder.starts_with(local_prefix);
  const fs::path folder = prefixed ? name_or_folder.substr(local_prefix.size()) : name_or_folder;
  if (names_folder(name_or_folder)) {
    return load_model(folder, options);
  }
  check_has_image_model(name_or_folder);
  check(!fs::exists(folder), "'{}' is a file: a model is given by its name or by its folder", name_or_folder);
  check(name_or_folder.find('/') == std::string::npos, "there is no model folder '{}'", name_or_folder);
  check_architecture(name_or_folder);
  return create_model(name_or_folder, options);
}

void save_model(const Model& model, const fs::path& folder, Layout layout, DType dtype) {
  check(!is_quantized(*model.net) || dtype == DType::f32, "the weights of '{}' are in int8 and stay so",
        model.architecture);
  if (layout == Layout::huggingface || model.family->table == nullptr) {
    check(!is_quantized(*model.net),
          "'{}' cannot be written in Hugging Face's layout: its weights are in int8, which transformers does not read",
          model.architecture);
    HubFiles files = hub_files(model, hub_form_of(model));
    files.config["dtype"] = dtype == DType::bf16 ? "bfloat16" : "float32";
    files.tensors = stored_as(std::move(files.tensors), dtype);
    write_hub_files(files, folder);
    return;
  }
  const io::NamedTensors tensors = stored_as(named_tensors(model.net->parameters), dtype);
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, config_json(model).dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, tensors);
  });
}

}  // namespace vitrail::models
