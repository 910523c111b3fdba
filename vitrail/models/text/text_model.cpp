#include "vitrail/models/text/text_model.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/text/families.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array text_families = {&bert_family,
                                      &bloom_family,
                                      &distilbert_family,
                                      &gpt2_family,
                                      &imagegpt_family,
                                      &llama_family,
                                      &marian_family,
                                      &mistral_family,
                                      &qwen2_family,
                                      &recurrent_family,
                                      &recurrent_seq2seq_family,
                                      &roberta_family,
                                      &torch_transformer_family};

constexpr std::string_view pooler_weight = "pooler.dense.weight";  // of a bare encoder

const TextFamily& text_family(const std::string& model_type, const std::string& source) {
  for (const TextFamily* family : text_families) {
    if (family->model_type == model_type) {
      return *family;
    }
  }
  const std::vector<std::string> known = text_model_types();
  fail("{}: 'model_type' is '{}', expected {}{}", source, model_type, io::quoted_list(known),
       io::did_you_mean(model_type, known));
}

Json models_of(const TextFamily& family) { return io::parse_json(family.models, std::string(family.model_type)); }

// The class of a config.json that the options ask for, or that it names, or the first of its family.
std::string architecture_of(const TextFamily& family, const Json& config, const std::string& source,
                            const TextModelOptions& options) {
  const auto stated = config.find("architectures");
  std::string name = options.architecture;
  std::string where = "--architecture";
  if (name.empty() && stated != config.end() && stated->is_array() && !stated->empty() && stated->front().is_string()) {
    name = stated->front();
    where = source + ": 'architectures'";
  }
  if (name.empty()) {
    return std::string(family.architectures.front());
  }
  const std::vector<std::string> known(family.architectures.begin(), family.architectures.end());
  check(std::ranges::find(known, name) != known.end(), "{}: '{}' is not supported, of {} only {}{}", where, name,
        family.model_type, io::quoted_list(known), io::did_you_mean(name, known));
  return name;
}

void set_labels(Json& config, const std::vector<std::string>& labels) {
  config.erase("num_labels");
  config.erase(problem_type_field);  // of the labels that were there before
  config["id2label"] = Json::object();
  config["label2id"] = Json::object();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    config["id2label"][std::to_string(i)] = labels[i];
    config["label2id"][labels[i]] = i;
  }
}

// Tensors by the names that transformers has today for those of old files.
io::StoredTensors with_present_names(const io::StoredTensors& file) {
  io::StoredTensors result(file.source());
  for (std::string name : file.names()) {
    const io::StoredTensor& tensor = file.find(name);
    for (const auto& [old, present] : {std::pair("LayerNorm.gamma", "weight"), {"LayerNorm.beta", "bias"}}) {
      if (name.ends_with(old)) {
        name = name.substr(0, name.rfind('.') + 1) + present;
      }
    }
    result.add(std::move(name), tensor);
  }
  return result;
}

// Makes a model by `config`, with the fields that the options change. Throws Error if these are none of the family's.
TextModel make(std::string name, const TextFamily& family, Json config, const std::string& source,
               const TextModelOptions& options, const nn::StoreOptions& store) {
  const Json changes = io::parse_json(options.model_kwargs, "--model-kwargs");
  check(changes.is_object(), "--model-kwargs must be key=value pairs, not {}", options.model_kwargs);
  config.update(changes);
  for (const std::string_view field : options.drop ? family.drop_rates : std::span<const std::string_view>()) {
    config[std::string(field)] = *options.drop;
  }
  if (!options.labels.empty()) {
    set_labels(config, options.labels);
  }
  io::Fields fields(config, changes.empty() ? source : source + " with --model-kwargs");
  TextModel model;
  model.name = std::move(name);
  model.family = &family;
  model.architecture = architecture_of(family, config, source, options);
  model.net = family.create(fields, model.architecture, store);
  model.problem_type = read_problem_type(fields);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    fields.ignore(key);
  }
  const std::vector<std::string> known(fields.known().begin(), fields.known().end());
  for (const auto& [key, value] : changes.items()) {
    check(fields.known().contains(key), "--model-kwargs: {} has no field '{}'{}", model.name, key,
          io::did_you_mean(key, known));
  }
  model.config = config.dump();
  return model;
}

// The parameters that map to the labels: those of another shape where there is one label more.
std::set<std::string> maps_to_labels(const TextModel& model, const Json& config, const std::string& source,
                                     TextModelOptions options) {
  options.labels.emplace_back("another");
  const TextModel larger = make(model.name, *model.family, config, source, options, {.fill = nn::Fill::meta});
  std::set<std::string> names;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (larger.net->parameters.at(parameter.name).value.shape() != parameter.value.shape()) {
      names.insert(parameter.name);
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> text_model_types() {
  std::vector<std::string> types;
  types.reserve(text_families.size());
  for (const TextFamily* family : text_families) {
    types.emplace_back(family->model_type);
  }
  return types;
}

std::vector<std::string> text_models() {
  std::vector<std::string> names;
  for (const TextFamily* family : text_families) {
    const Json models = models_of(*family);  // must outlive its items()
    for (const auto& [name, fields] : models.items()) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

TextModel create_text_model(const std::string& name, const TextModelOptions& options) {
  for (const TextFamily* family : text_families) {
    const Json models = models_of(*family);
    if (models.contains(name)) {
      nn::StoreOptions store{.seed = options.seed, .fill = options.fill};
      if (options.weights) {
        const TextModel described = make(name, *family, models[name], name, options, {.fill = nn::Fill::meta});
        store.held = held_text_weights(*described.net, {*options.weights});
      }
      TextModel model = make(name, *family, models[name], name, options, store);
      for (const auto& [weight, how] : store.fill == nn::Fill::initialize ? store.held : HeldWeights()) {
        model.net->parameters.initialize(weight);
      }
      return model;
    }
  }
  fail("there is no text model '{}'{}", name, io::did_you_mean(name, text_models()));
}

HeldWeights held_text_weights(const TextNetwork& net, const nn::Held& how) {
  HeldWeights result = held_weights(net, how);
  for (const std::string& name : net.vocabulary_weights()) {
    if (net.parameters.find(name) != nullptr) {
      result[name] = how;
    }
  }
  return result;
}

TextModel remake_text_model(const TextModel& model, const nn::StoreOptions& store) {
  const Json config = io::parse_json(model.config, model.name);
  io::Fields fields(config, model.name);
  return {.name = model.name,
          .family = model.family,
          .architecture = model.architecture,
          .net = model.family->create(fields, model.architecture, store),
          .config = model.config};
}

TextModel load_text_model(const fs::path& folder, const TextModelOptions& options) {
  const fs::path path = folder / config_file;
  Json config = read_config(folder);
  check(is_hub_config(config), "{}: it has no 'model_type', as a language model has", path.string());
  const std::string type = hub_model_type(config, path.string());
  const std::string source = path.string();
  const TextFamily& family = text_family(type, source);
  const bool meta = options.fill == nn::Fill::meta;
  const bool other_head =
      !options.labels.empty() ||
      (!options.architecture.empty() && options.architecture != architecture_of(family, config, source, {}));
  TextModel model = make(type, family, config, source, options, {.fill = nn::Fill::meta});
  if (!meta) {
    const io::StoredTensors file = with_present_names(open_weights(folder));
    if (model.net->parameters.find(pooler_weight) != nullptr &&
        std::ranges::none_of(file.names(), [](const std::string& name) { return name.ends_with(pooler_weight); })) {
      config["add_pooling_layer"] = false;  // config.json does not say that it was saved without
      model = make(type, family, config, source, options, {.fill = nn::Fill::meta});
    }
    const std::vector<NameRule> rules = family.names(*model.net);
    const NameMap names = names_in(file, rules, std::string(family.prefix));
    nn::StoreOptions store{.seed = options.seed, .fill = other_head ? options.fill : nn::Fill::leave};
    for (const auto& [theirs, how] : quantized_weights(file)) {
      store.held[names.own_of(theirs).value_or(theirs)] = how;
    }
    if (store.held.empty() && options.weights) {
      store.held = held_text_weights(*model.net, {*options.weights});
      check(!store.held.empty() || *options.weights != DType::i8, "the model '{}' has no linear map that int8 pays for",
            folder.string());
    }
    model = make(type, family, config, source, options, store);
    // What the file has of another head is taken, as by transformers: all of it that has the same name and shape.
    const std::set<std::string> renewed =
        options.renew_classifier ? maps_to_labels(model, config, source, options) : std::set<std::string>();
    const auto holds = [&](const std::string& name) {
      const std::vector<std::string> theirs = names.theirs_of(name);
      return !renewed.contains(name) && theirs.size() == 1 && file.contains(theirs[0]) &&
             file.shape(theirs[0]) == model.net->parameters.at(name).value.shape();
    };
    const WeightsTarget target{
        .parameters = model.net->parameters,
        .prefix = "",
        .is_head = [&](const std::string& name) { return other_head && model.net->is_head(name) && !holds(name); },
        .adapt = {}};
    load_weights(target, file, names, {}, {.classifier = other_head});
  }
  return model;
}

TextModel open_text_model(const std::string& name_or_folder, const TextModelOptions& options) {
  const std::vector<std::string> names = text_models();
  const bool is_model = std::ranges::find(names, name_or_folder) != names.end();
  // A folder of some other kind may have the name of a model.
  const bool is_folder =
      is_model ? fs::exists(fs::path(name_or_folder) / config_file) : fs::is_directory(name_or_folder);
  if (is_shipped_name(name_or_folder) || is_folder) {
    return load_text_model(shipped_or(name_or_folder), options);
  }
  check(name_or_folder.find('/') == std::string::npos, "there is no model folder '{}'", name_or_folder);
  return create_text_model(name_or_folder, options);
}

std::string architecture_for(const std::string& name_or_folder, std::string_view ending) {
  const TextModel model = open_text_model(name_or_folder, {.fill = nn::Fill::meta});
  for (const std::string_view name : model.family->architectures) {
    if (name.ends_with(ending)) {
      return std::string(name);
    }
  }
  const std::vector<std::string> known(model.family->architectures.begin(), model.family->architectures.end());
  fail("'{}': of {} there is no {}, only {}", name_or_folder, model.family->model_type, ending,
       io::quoted_list(known, "and"));
}

bool names_text_model(const std::string& name_or_folder) {
  const fs::path folder = name_or_folder;
  if (!fs::exists(folder / config_file)) {
    const std::vector<std::string> names = text_models();
    return std::ranges::find(names, name_or_folder) != names.end();
  }
  const Json config = io::read_json(folder / config_file);
  return is_hub_config(config) && config["model_type"].is_string() &&
         std::ranges::any_of(text_families,
                             [&](const TextFamily* family) { return config["model_type"] == family->model_type; });
}

void write_text_model(const TextModel& model, const fs::path& folder) {
  nlohmann::ordered_json config;
  config["architectures"] = {model.architecture};
  config["model_type"] = std::string(model.family->model_type);
  config.update(nlohmann::ordered_json::parse(model.config));
  config["architectures"] = {model.architecture};
  config.erase("torch_dtype");  // the older name
  config["dtype"] = "float32";
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, named_tensors(model.net->parameters));
}

void check_vocabulary(std::int64_t tokens, std::int64_t vocab_size, std::string_view source) {
  check(tokens <= vocab_size, "{}the tokenizer has {} tokens, but the model knows {}",
        source.empty() ? "" : fmt::format("'{}': ", source), tokens, vocab_size);
}

std::vector<std::string> labels_of(const TextModel& model) {
  const Json config = Json::parse(model.config);
  io::Fields fields(config, model.name);
  return read_class_names(fields);
}

namespace {

// What a model of texts does, and the command for it: for one that does not what was asked of it.
std::string_view use_of(const TextNetwork& net) {
  if (net.translator() != nullptr) {
    return "it translates: `vitrail translate` takes it";
  }
  if (net.language() != nullptr) {
    return "it continues texts: `vitrail generate` takes it";
  }
  if (const TextClassifier* classifier = net.classifier()) {
    return classifier->each_token() ? "it labels words: `vitrail predict` takes it"
                                    : "it classifies texts: `vitrail predict` takes it";
  }
  return "it encodes texts: `vitrail embed` takes it, and `vitrail fill-mask` if it predicts masked words";
}

template <typename Network>
const Network& known_as(const TextModel& model, const Network* network, std::string_view does_not) {
  check(network != nullptr, "{} ({}) {}: {}", model.name, model.architecture, does_not, use_of(*model.net));
  return *network;
}

}  // namespace

const TextClassifier& classifier_of(const TextModel& model) {
  return known_as(model, model.net->classifier(), "has no classes");
}

const LanguageBody& language_of(const TextModel& model) {
  return known_as(model, model.net->language(), "does not continue texts");
}

const Translator& translator_of(const TextModel& model) {
  return known_as(model, model.net->translator(), "does not translate");
}

}  // namespace vitrail::models
