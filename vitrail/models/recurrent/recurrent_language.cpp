#include "vitrail/models/recurrent/recurrent_language.h"

#include <algorithm>

#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

Tensor identity(std::int64_t size) {
  Tensor result = Tensor::zeros({size, size});
  for (std::int64_t i = 0; i < size; ++i) {
    result.data<float>()[i * size + i] = 1;
  }
  return result;
}

}  // namespace

RecurrentLanguageConfig with_input(RecurrentLanguageConfig config) {
  config.network.input_size = config.embedding_size > 0 ? config.embedding_size : config.vocab_size;
  return config;
}

TextShape shape_of(const RecurrentLanguageConfig& config) {
  return {.vocab_size = config.vocab_size,
          .max_positions = unbounded_positions,
          .depth = config.network.num_layers,
          .dim = config.network.hidden_size};
}

TokenVectors::TokenVectors(const nn::Scope& scope, const RecurrentLanguageConfig& config)
    : vocab_size(config.vocab_size), drop{config.network.dropout} {
  if (config.embedding_size > 0) {
    table = scope.parameter("weight", {vocab_size, config.embedding_size}, nn::Init::uniform(language_init));
  } else if (scope.options().fill != nn::Fill::meta) {
    table = identity(vocab_size);
  }
}

Tensor TokenVectors::operator()(const Tensor& ids, nn::Pass& pass) const {
  check_token_ids(ids, vocab_size);
  return drop(ops::cast(ops::embedding(table, ids), pass.dtype), pass);
}

void RecurrentTextState::select(const std::vector<std::int64_t>& indices) {
  const Tensor chosen = Tensor::from(indices, {std::ssize(indices)});
  const auto select = [&](const Tensor& states) {
    return states.defined() ? ops::index_select(states, 1, chosen) : Tensor();
  };
  state = {select(state.h), select(state.c)};
}

void RecurrentTextState::join(const TextState& other) {
  const auto& from = dynamic_cast<const RecurrentTextState&>(other);
  const auto joined = [](const Tensor& own, const Tensor& added) {
    return own.defined() && added.defined() ? ops::concat({own, added}, 1) : added.defined() ? added : own;
  };
  state = {joined(state.h, from.state.h), joined(state.c, from.state.c)};
  tokens = std::max(tokens, from.tokens);
}

void RecurrentTextState::drop_last(std::int64_t count) {
  check(count == 0, "a recurrent network cannot forget the last {} tokens that it has read", count);
}

std::size_t RecurrentTextState::bytes() const {
  const std::int64_t numbers = (state.h.defined() ? state.h.numel() : 0) + (state.c.defined() ? state.c.numel() : 0);
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

RecurrentLanguage::RecurrentLanguage(const nn::Scope& scope, const RecurrentLanguageConfig& config)
    : config_(with_input(config)), drop_{config.network.dropout} {
  const std::int64_t width = config_.network.output_size();
  vectors_.emplace(scope / "encoder", config_);
  network_.emplace(scope / "rnn", config_.network);
  if (config_.tied_head) {
    check(config_.embedding_size == width,
          "a head that is tied to the embedding wants embedding_size {} to be the size of the state, {}",
          config_.embedding_size, width);
    head_weight_ = vectors_->table;
  } else {
    head_weight_ =
        (scope / "decoder").parameter("weight", {config_.vocab_size, width}, nn::Init::uniform(language_init));
  }
  head_bias_ = (scope / "decoder").parameter("bias", {config_.vocab_size}, nn::Init::zeros());
}

Tensor RecurrentLanguage::head(const Tensor& output) const {
  return ops::cast(ops::linear(output, head_weight_, head_bias_), DType::f32);
}

Tensor RecurrentLanguage::outputs(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  const Tensor x = (*vectors_)(ids, pass);
  if (state == nullptr) {
    return drop_((*network_)(x, pass).output, pass);
  }
  auto& own = dynamic_cast<RecurrentTextState&>(*state);
  nn::RecurrentOutput result = (*network_)(x, own.state, {}, pass);
  own.state = result.state.detached();
  own.tokens += ids.size(1);
  return drop_(result.output, pass);
}

Tensor RecurrentLanguage::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  return head(outputs(ids, pass, state));
}

Tensor RecurrentLanguage::forward_texts(const Texts& texts, nn::Pass& pass) const {
  const Tensor x = (*vectors_)(ids_side_by_side(texts), pass);
  const Tensor output = (*network_)(x, {}, lengths_side_by_side(texts), pass).output;
  return head(drop_(in_own_form(output, texts), pass));
}

Tensor RecurrentLanguage::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  return head(ops::select(outputs(ids, pass, &state), 1, ids.size(1) - 1));
}

std::size_t RecurrentLanguage::state_bytes(std::int64_t, DType) const {
  const nn::RecurrentConfig& c = config_.network;
  return static_cast<std::size_t>(c.num_layers * (c.output_size() + c.hidden_size)) * sizeof(float);
}

std::int64_t RecurrentLanguage::flops(std::int64_t tokens) const {
  return network_->flops(tokens) + tokens * head_weight_.numel();
}

std::int64_t RecurrentLanguageNetwork::layer_of(const std::string& parameter) const {
  if (is_head(parameter)) {
    return depth() + 1;
  }
  return parameter.starts_with("rnn.") ? layer_of_recurrent(parameter) : 0;
}

const RecurrentLanguage* as_recurrent(const LanguageBody& body) {
  return dynamic_cast<const RecurrentLanguage*>(&body);
}

}  // namespace vitrail::models
