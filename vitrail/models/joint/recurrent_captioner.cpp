#include "vitrail/models/joint/recurrent_captioner.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/recurrent/image_encoder.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

namespace fs = std::filesystem;

RecurrentCaptioner::RecurrentCaptioner(Model pictures, const std::string& decoder, const std::string& source)
    : decoder_config_(decoder) {
  image_model = std::move(pictures);
  adopt_encoder(image_model, parameters, source);

  const nlohmann::json json = io::parse_json(decoder, source);
  io::Fields f(json, source);
  RecurrentDecoderConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", {1, largest_size});
  end = f.get<std::int64_t>("eos_token_id", {0, static_cast<double>(c.vocab_size - 1)});
  start = end;
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

RecurrentDecoder::Start RecurrentCaptioner::look(const Tensor& x, nn::Pass& pass) const {
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

Tensor RecurrentCaptioner::logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const {
  RecurrentDecoder::Start from = look(x, pass);
  const std::int64_t count = texts.offsets.defined() ? texts.offsets.numel() - 1 : texts.ids.size(0);
  const std::int64_t each = texts_of_each(count, x.size(0));
  if (each > 1) {
    const Tensor rows = repeated_rows(x.size(0), each);
    from.state.h = ops::index_select(from.state.h, 1, rows);
    from.state.c = from.state.c.defined() ? ops::index_select(from.state.c, 1, rows) : Tensor();
  }
  return decoder_->logits(texts, from, pass);
}

std::int64_t RecurrentCaptioner::layer_of(const std::string& parameter) const {
  const std::int64_t below = image_model.net->depth();
  if (!of_decoder(parameter)) {
    return std::min(image_model.net->layer_of(parameter), below);
  }
  return parameter.starts_with("decoder.rnn.") ? below + layer_of_recurrent(parameter)
         : is_head(parameter)                  ? depth() + 1
                                               : below + 1;
}

TextShape RecurrentCaptioner::decoder_shape() const {
  const RecurrentDecoderConfig& c = decoder_->config();
  return {.vocab_size = c.vocab_size,
          .max_positions = unbounded_positions,
          .depth = c.network.num_layers,
          .dim = c.network.hidden_size};
}

std::string RecurrentCaptioner::decoder_kind() const {
  return nlohmann::json::parse(decoder_config_).at("architecture").get<std::string>();
}

std::unique_ptr<Captioner> load_recurrent_captioner(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nlohmann::json config = io::read_json(source);
  io::Fields f(config, source);
  const auto type = f.get<std::string>("model_type");
  check(type == recurrent_captioner_type, "{}: 'model_type' is '{}', expected '{}'", source, type,
        recurrent_captioner_type);
  f.object("decoder");  // the network reads it
  Model image_model = read_encoder(f);
  f.finish();
  auto model =
      std::make_unique<RecurrentCaptioner>(std::move(image_model), f.raw("decoder").dump(), source + ": 'decoder'");
  const WeightsTarget target = whole_network(model->parameters);
  load_weights(target, open_weights(folder), {}, {});
  return model;
}

void RecurrentCaptioner::write(const fs::path& folder, DType dtype) const {
  const nlohmann::ordered_json config = {{"model_type", recurrent_captioner_type},
                                         {"encoder", encoder_json(image_model)},
                                         {"decoder", nlohmann::ordered_json::parse(decoder_config_)}};
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(named_tensors(parameters), dtype));
  write_generation_config(folder);
}

}  // namespace vitrail::models
