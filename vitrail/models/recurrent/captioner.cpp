#include "vitrail/models/recurrent/captioner.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/recurrent/image_encoder.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* captioner_type = "recurrent_captioner";

}  // namespace

Captioner::Captioner(Model pictures, const std::string& decoder, const std::string& source)
    : image_model(std::move(pictures)), decoder_config_(decoder) {
  adopt_encoder(image_model, parameters, source);

  const nlohmann::json json = io::parse_json(decoder, source);
  io::Fields f(json, source);
  RecurrentDecoderConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", {1, largest_size});
  end_ = f.get<std::int64_t>("eos_token_id", {0, static_cast<double>(c.vocab_size - 1)});
  read_cells(f, c.network);
  c.embedding_size = f.get<std::int64_t>("embedding_size", c.network.hidden_size, {1, largest_size});
  c.tied_head = f.get<bool>("tie_word_embeddings", false);
  f.finish();

  const nn::Scope scope = nn::Scope(parameters) / "decoder";
  const std::int64_t features = image_model.net->num_features();
  for (std::int64_t layer = 0; layer < c.network.num_layers; ++layer) {
    start_h_.emplace_back(scope / "start" / "h" / layer, features, c.network.output_size());
    if (c.network.has_memory()) {
      start_c_.emplace_back(scope / "start" / "c" / layer, features, c.network.hidden_size);
    }
  }
  decoder_ = std::make_unique<const RecurrentDecoder>(scope, c);
  initialize_own(parameters, of_decoder);
}

RecurrentDecoder::Start Captioner::look(const Tensor& x, nn::Pass& pass) const {
  const Tensor features = ops::cast(image_model.net->forward(x, pass), pass.dtype);
  std::vector<Tensor> h;
  std::vector<Tensor> c;
  for (const nn::Linear& layer : start_h_) {
    h.push_back(ops::cast(layer(features, ops::Activation::tanh), DType::f32));
  }
  for (const nn::Linear& layer : start_c_) {
    c.push_back(ops::cast(layer(features), DType::f32));
  }
  return {{ops::stack(h, 0), c.empty() ? Tensor() : ops::stack(c, 0)}};
}

std::int64_t Captioner::layer_of(const std::string& parameter) const {
  const std::int64_t below = image_model.net->depth();
  if (!of_decoder(parameter)) {
    return std::min(image_model.net->layer_of(parameter), below);
  }
  return parameter.starts_with("decoder.rnn.") ? below + layer_of_recurrent(parameter)
         : is_head(parameter)                  ? depth() + 1
                                               : below + 1;
}

std::unique_ptr<TextState> Captioning::begin(std::optional<DType> /*cache*/) const {
  nn::Pass pass{.dtype = dtype_};
  return model_.decoder().begin(model_.look(x_, pass));
}

Tensor Captioning::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  check(state == nullptr, "a caption goes on by forward_last()");
  return ops::cast(model_.logits(x_, {ids}, pass), DType::f32);
}

bool is_captioner_folder(const fs::path& folder) {
  if (!fs::exists(folder / config_file)) {
    return false;
  }
  const nlohmann::json config = io::read_json(folder / config_file);
  return config.is_object() && config.contains("model_type") && config["model_type"] == captioner_type;
}

std::unique_ptr<Captioner> load_captioner(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nlohmann::json config = io::read_json(source);
  io::Fields f(config, source);
  const auto type = f.get<std::string>("model_type");
  check(type == captioner_type, "{}: 'model_type' is '{}', expected '{}'", source, type, captioner_type);
  f.object("decoder");  // the network reads it
  Model image_model = read_encoder(f);
  f.finish();
  auto model = std::make_unique<Captioner>(std::move(image_model), f.raw("decoder").dump(), source + ": 'decoder'");
  const WeightsTarget target{
      .parameters = model->parameters,
      .prefix = "",
      .is_head = [](const std::string&) { return false; },
      .adapt = [](const std::string&, const Tensor& value, const Shape&, const nn::Size2&) { return value; }};
  load_weights(target, open_weights(folder), {}, {});
  return model;
}

void write_captioner(const Captioner& model, const fs::path& folder) {
  const nlohmann::ordered_json config = {{"model_type", captioner_type},
                                         {"encoder", encoder_json(model.image_model)},
                                         {"decoder", nlohmann::ordered_json::parse(model.decoder_config())}};
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, named_tensors(model.parameters));
}

}  // namespace vitrail::models
