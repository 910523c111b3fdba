#include "vitrail/models/detection/set2set.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* set2set_type = "vitrail_set2set";
constexpr const char* set2set_name = "set2set";

void check_set2set(const Set2SetConfig& c) {
  check(c.num_queries > 0 && c.num_labels > 0 && c.encoder_layers >= 0 && c.decoder_layers > 0,
        "a set2set has at least one query, one class and one layer of the decoder, not {}, {} and {}", c.num_queries,
        c.num_labels, c.decoder_layers);
  check(c.input_size > 0 && c.output_size > 0, "elements have at least one number, not {} in and {} out", c.input_size,
        c.output_size);
}

SetModel make_set_model(const Json& json, const std::string& source, const nn::StoreOptions& store) {
  io::Fields f(json, source);
  Set2SetConfig c;
  const auto size = [&](const char* key, std::int64_t fallback) {
    return f.get<std::int64_t>(key, fallback, positive);
  };
  c.d_model = size("d_model", 64);
  c.encoder_layers = f.get<std::int64_t>("encoder_layers", 2, {0, most_layers.high});
  c.decoder_layers = f.get<std::int64_t>("decoder_layers", 2, most_layers);
  c.encoder_attention_heads = size("encoder_attention_heads", 4);
  c.decoder_attention_heads = size("decoder_attention_heads", 4);
  c.encoder_ffn_dim = size("encoder_ffn_dim", 2 * c.d_model);
  c.decoder_ffn_dim = size("decoder_ffn_dim", 2 * c.d_model);
  c.activation = ops::activation_named(timm_activation(f, "activation_function", "relu"));
  c.num_queries = size("num_queries", 8);
  const auto rate = [&](const char* key) { return static_cast<float>(f.get<double>(key, 0, {0, 1})); };
  c.dropout = rate("dropout");
  c.attention_dropout = rate("attention_dropout");
  c.activation_dropout = rate("activation_dropout");
  c.input_size = f.get<std::int64_t>("input_size", {1, largest_size});
  c.output_size = f.get<std::int64_t>("output_size", {1, largest_size});
  SetModel model;
  model.name = set2set_name;
  model.labels = f.get<std::vector<std::string>>("label_names");
  check(!model.labels.empty(), "{}: 'label_names' is empty", source);
  c.num_labels = std::ssize(model.labels);
  f.ignore("model_type");
  f.ignore("architectures");
  f.finish();
  model.net = std::make_unique<Set2Set>(c, store);
  model.config = json.dump();
  return model;
}

}  // namespace

Set2Set::Set2Set(const Set2SetConfig& config, const nn::StoreOptions& store) : nn::Network(store), config_(config) {
  check_set2set(config_);
  const nn::Scope root(parameters);
  const nn::Scope model = (root / "model").with_init(detr_init_rule());
  input_projection_.emplace(model / "input_projection", config_.input_size, config_.d_model);
  transformer_.emplace(model, config_);
  heads_.emplace(root, "value_predictor", config_, config_.output_size);
}

std::vector<Tensor> Set2Set::decode(const SetInput& input, nn::Pass& pass, bool all_layers) const {
  const Tensor& x = input.x;
  check(x.rank() == 3 && x.size(2) == config_.input_size, "sets are [B, N, {}], not {}", config_.input_size, x.shape());
  Tensor mask;
  if (input.mask.defined()) {
    const Shape wanted{x.size(0), x.size(1)};
    check(input.mask.shape() == wanted && input.mask.dtype() == DType::boolean, "the mask is {} {}, expected bool {}",
          name_of(input.mask.dtype()), input.mask.shape(), wanted);
    mask = ops::reshape(input.mask, {x.size(0), 1, 1, x.size(1)});
  }
  return (*transformer_)({ops::cast((*input_projection_)(x), pass.dtype), {}, mask}, pass, all_layers);
}

SetOutputs Set2Set::forward(const SetInput& input, nn::Pass& pass) const {
  return (*heads_)(decode(input, pass, false).front());
}

SetOutputs Set2Set::forward_layers(const SetInput& input, nn::Pass& pass) const {
  return (*heads_)(ops::concat(decode(input, pass, true), 0));
}

std::int64_t Set2Set::flops(std::int64_t elements) const {
  return input_projection_->flops(elements) + transformer_->flops(elements) + heads_->flops(config_.num_queries);
}

bool Set2Set::is_head(const std::string& parameter) const { return parameter.starts_with("class_labels_classifier."); }

SetModel create_set_model(const std::string& name, const SetShape& shape, const std::string& kwargs,
                          const nn::StoreOptions& store) {
  check(name == set2set_name, "there is no network '{}' of sets: expected a folder or {}", name, set2set_name);
  Json config = io::parse_json(kwargs, "--model-kwargs");
  for (const char* own : {"input_size", "output_size", "label_names"}) {
    check(!config.contains(own), "--model-kwargs: '{}' follows from the data", own);
  }
  config["model_type"] = set2set_type;
  config["input_size"] = shape.input_size;
  config["output_size"] = shape.output_size;
  config["label_names"] = shape.labels;
  config.emplace("num_queries", shape.num_queries);
  return make_set_model(config, name, store);
}

bool is_set_model_folder(const fs::path& given) { return model_type_in(shipped_or(given)) == set2set_type; }

SetModel load_set_model(const fs::path& given, nn::Fill fill) {
  const fs::path folder = shipped_or(given);
  const Json json = read_config(folder);
  check(is_set_model_folder(folder), "'{}' is no set2set: the \"model_type\" in its {} is not '{}'", folder.string(),
        config_file, set2set_type);
  SetModel model = make_set_model(json, (folder / config_file).string(), {.fill = fill});
  if (fill != nn::Fill::meta) {
    load_weights(whole_network(model.net->parameters), open_weights(folder), {}, {});
  }
  return model;
}

void write_set_model(const SetModel& model, const fs::path& folder) {
  io::write_atomically(folder / config_file, nlohmann::ordered_json(Json::parse(model.config)).dump(2) + "\n");
  io::save_safetensors(folder / weights_file, named_tensors(model.net->parameters));
}

}  // namespace vitrail::models
