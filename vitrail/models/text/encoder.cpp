#include "vitrail/models/text/encoder.h"

#include <utility>

#include <fmt/format.h>

#include "vitrail/models/base/adapt.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

void check_types(const Tensor& types, const Shape& shape, std::int64_t count) {
  check(types.shape() == shape && types.dtype() == DType::i64, "the types of tokens must be {} i64, not {} {}", shape,
        types.shape(), name_of(types.dtype()));
  const Tensor dense = types.contiguous();
  const std::span<const std::int64_t> values = dense.span<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto length = static_cast<std::size_t>(shape[1]);
    check(values[i] >= 0 && values[i] < count,
          "token {} of text {} has the type {}, but the model has the types 0 … {}", i % length, i / length, values[i],
          count - 1);
  }
}

}  // namespace

EncoderInput encoder_input(const TextInputs& inputs) {
  check(inputs.input_ids.defined(), "an encoder reads 'input_ids' [B, N] i64, which are missing");
  check(!inputs.decoder_input_ids.defined(), "an encoder has no decoder for 'decoder_input_ids'");
  return {.ids = inputs.input_ids, .types = inputs.token_type_ids, .lengths = lengths_of(inputs.attention_mask)};
}

Encoder::Encoder(const nn::Scope& scope, const EncoderConfig& config) : config_(config) {
  const EncoderNames& names = config_.names;
  if (config_.vocab_size > 0) {
    embedding_.emplace(scope / names.embedding, config_.vocab_size, config_.dim);
  }
  positions_.emplace(scope / names.positions, config_.positions, config_.max_positions, config_.dim);
  if (config_.type_vocab_size > 0) {
    types_.emplace(scope / names.types, config_.type_vocab_size, config_.dim);
  }
  if (config_.embedding_norm) {
    embedding_norm_.emplace(scope / names.embedding_norm, config_.dim, *config_.embedding_norm);
  }
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(scope / names.blocks / i, config_.block);
  }
  if (config_.norm) {
    norm_.emplace(scope / names.norm, config_.dim, *config_.norm);
  }
}

Tensor Encoder::embed(const EncoderInput& input, nn::Pass& pass) const {
  Tensor x = input.embedded.defined() ? input.embedded : (*embedding_)(input.ids);
  if (config_.embedding_scale != 1) {
    x = x * config_.embedding_scale;
  }
  x = positions_->add_to(x, 0, input.offsets);
  if (types_) {
    x = x + (input.types.defined() ? (*types_)(input.types) : ops::narrow(types_->weight, 0, 0, 1));
  }
  if (embedding_norm_) {
    x = (*embedding_norm_)(x);
  }
  return nn::Dropout{config_.embd_drop}(ops::cast(x, pass.dtype), pass);
}

Tensor Encoder::operator()(const EncoderInput& input, nn::Pass& pass) const {
  if (input.embedded.defined()) {
    check(input.embedded.rank() == 3 && input.embedded.size(2) == config_.dim,
          "the encoder takes embedded tokens [B, N, {}], not {}", config_.dim, input.embedded.shape());
  } else {
    check(embedding_.has_value(), "the encoder has no embedding of tokens: it takes embedded ones");
    check_token_ids(input.ids, config_.vocab_size);
  }
  const Tensor& texts = input.embedded.defined() ? input.embedded : input.ids;
  const std::int64_t longest = longest_text({.ids = texts, .offsets = input.offsets});
  check(config_.max_positions == 0 || longest <= config_.max_positions,
        "the text has {} tokens, but the model is made for at most {}", longest, config_.max_positions);
  if (input.types.defined()) {
    check(types_.has_value(), "the model's tokens have no types");
    check_types(input.types, {texts.size(0), texts.size(1)}, config_.type_vocab_size);
  }
  nn::AttentionExtras extras;
  extras.causal = config_.causal;
  extras.lengths = input.lengths;
  extras.query_offsets = input.offsets;
  extras.rotation = positions_->rotation(0, texts.size(1), input.offsets);
  extras.distance_bias = pass.checkpoint ? Tensor() : positions_->distance_bias(longest);
  Tensor x = embed(input, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = nn::run_block(in_block(blocks_[i], *positions_, extras, longest), std::move(x), pass);
    if (pass.wants_features()) {
      pass.recorder->feature(fmt::format("{}.{}", config_.names.blocks, i), x);
    }
  }
  return norm_ ? (*norm_)(x) : x;
}

std::int64_t Encoder::flops(std::int64_t tokens) const {
  std::int64_t total = embedding_norm_ ? embedding_norm_->flops(tokens) : 0;
  for (const nn::Block& block : blocks_) {
    total += block.flops(tokens);
  }
  return total + (norm_ ? norm_->flops(tokens) : 0);
}

std::int64_t Encoder::layer_of(const std::string& parameter) const {
  if (const auto block = index_after(parameter, config_.names.blocks + ".")) {
    return *block + 1;
  }
  const EncoderNames& names = config_.names;
  for (const std::string* name : {&names.embedding, &names.positions, &names.types, &names.embedding_norm}) {
    if (!name->empty() && parameter.starts_with(*name + ".")) {
      return 0;
    }
  }
  return config_.depth + 1;
}

}  // namespace vitrail::models
