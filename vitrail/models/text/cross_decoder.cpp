#include "vitrail/models/text/cross_decoder.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/text/translator.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail::models {
namespace {

Tensor rows_at(const Tensor& x, const std::vector<std::int64_t>& indices) {
  return x.defined() ? ops::index_select(x, 0, Tensor::from(indices, {std::ssize(indices)})) : x;
}

}  // namespace

nn::DecoderBlockConfig block_config(const CrossDecoderConfig& config, std::int64_t index) {
  nn::DecoderBlockConfig block = config.block;
  if (config.scale_by_inverse_layer) {
    for (nn::AttentionConfig* attention : {&block.attention, &block.cross}) {
      attention->scale = nn::scale_of(*attention) / static_cast<float>(index + 1);
    }
  }
  return block;
}

void CrossDecoderState::select(const std::vector<std::int64_t>& indices) {
  const auto [left, each] = sources_left(indices, texts_each);
  texts.select(indices);
  texts_each = each;
  std::vector<std::int64_t> all(static_cast<std::size_t>(sources.empty() ? 0 : sources[0].memory.keys.size(0)));
  std::iota(all.begin(), all.end(), 0);
  if (left == all) {
    return;  // the same sources
  }
  const Tensor lengths = sources.empty() ? Tensor() : rows_at(sources[0].lengths, left);
  for (nn::DecoderBlock::Source& source : sources) {
    source = {{rows_at(source.memory.keys, left), rows_at(source.memory.values, left)}, lengths, {}};
  }
}

std::size_t CrossDecoderState::bytes() const {
  std::size_t total = 0;
  for (const nn::KeyValueCache& cache : blocks) {
    total += cache.bytes();
  }
  for (const nn::DecoderBlock::Source& source : sources) {
    total += source.memory.keys.bytes() + source.memory.values.bytes();
  }
  return total;
}

CrossDecoder::CrossDecoder(const nn::Scope& scope, const CrossDecoderConfig& config, nn::Embedding embedding)
    : config_(config),
      embedding_(std::move(embedding)),
      positions_(scope / config.names.positions, config.positions, config.max_positions, config.dim) {
  const CrossDecoderNames& names = config_.names;
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(scope / names.blocks / i, block_config(config_, i));
  }
  if (config_.norm) {
    norm_.emplace(scope / names.norm, config_.dim, *config_.norm);
  }
  const std::int64_t vocab = config_.vocab_size;
  if (!config_.tied_head) {
    head_.emplace(scope / names.head, config_.dim, vocab, config_.head_bias);
  } else if (config_.head_bias) {
    tied_bias_ = (scope / names.head).parameter("bias", {vocab}, nn::Init::zeros());
  }
  if (!config_.head_bias && config_.logits_bias) {
    (head_ ? head_->bias : tied_bias_) =
        scope.buffer("final_logits_bias", {1, vocab}, nn::Init::zeros()).reshape({vocab});
  }
}

CrossDecoder::Sources CrossDecoder::remember(const Tensor& memory, const Tensor& lengths, const Tensor& offsets) const {
  Sources result;
  result.reserve(blocks_.size());
  for (const nn::DecoderBlock& block : blocks_) {
    result.push_back({block.cross.remember(memory), lengths, offsets});
  }
  return result;
}

Tensor CrossDecoder::operator()(const Texts& texts, const Sources& sources, nn::Pass& pass, CrossDecoderState* state,
                                std::string_view what) const {
  check_token_ids(texts.ids, config_.vocab_size);
  const std::int64_t begin = state != nullptr ? state->length() : 0;
  const std::int64_t longest = begin + longest_text(texts);
  check(longest <= config_.max_positions, "the {} has {} tokens, but the model is made for at most {}", what, longest,
        config_.max_positions);
  if (state != nullptr) {
    state->texts.extend(texts.ids.size(0), texts.ids.size(1));
  }
  Tensor x = embedding_(texts.ids);
  if (config_.embedding_scale != 1) {
    x = x * config_.embedding_scale;
  }
  x = positions_.add_to(x, begin, texts.offsets);
  x = nn::Dropout{config_.embd_drop}(ops::cast(x, pass.dtype), pass);
  nn::AttentionExtras own;
  own.causal = true;
  own.query_offsets = texts.offsets;
  own.rotation = positions_.rotation(begin, texts.ids.size(1), texts.offsets);
  own.distance_bias = positions_.distance_bias(longest);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    own.cache = state != nullptr ? &state->blocks[i] : nullptr;
    x = blocks_[i](x, sources[i], pass, own);
    if (pass.wants_features()) {
      pass.recorder->feature(fmt::format("{}.{}", config_.names.blocks, i), x);
    }
  }
  return norm_ ? (*norm_)(x) : x;
}

Tensor CrossDecoder::head(const Tensor& states) const {
  return head_ ? (*head_)(states) : embedding_.scores(states, tied_bias_);
}

Tensor CrossDecoder::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state, std::string_view what) const {
  auto* const own = dynamic_cast<CrossDecoderState*>(&state);
  check(own != nullptr, "a decoder goes on from its own state alone");
  const Tensor states = (*this)({ids}, own->sources, pass, own, what);
  const Tensor logits = head(states.narrow(1, states.size(1) - 1, 1));
  return ops::cast(logits, DType::f32).reshape({ids.size(0), config_.vocab_size});
}

std::int64_t CrossDecoder::flops(std::int64_t memory, std::int64_t tokens) const {
  std::int64_t total = tokens * config_.dim * config_.vocab_size;
  for (const nn::DecoderBlock& block : blocks_) {
    total += block.flops(tokens, memory);
  }
  return total + (norm_ ? norm_->flops(tokens) : 0);
}

}  // namespace vitrail::models
