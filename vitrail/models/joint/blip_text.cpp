#include "vitrail/models/joint/blip_text.h"

#include <utility>

#include <fmt/format.h>

#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail::models {
namespace {

nn::DecoderBlockConfig block_of(const BlipTextConfig& c) {
  nn::DecoderBlockConfig block;
  for (nn::AttentionConfig* attention : {&block.attention, &block.cross}) {
    attention->dim = c.dim;
    attention->num_heads = c.num_heads;
    attention->qkv_bias = true;
    attention->attn_drop = c.attn_drop;
    attention->proj_drop = c.drop;
  }
  block.cross.context_dim = c.context_dim;
  block.mlp.dim = c.dim;
  block.mlp.hidden = c.hidden;
  block.mlp.activation = c.activation;
  block.mlp.drop2 = c.drop;
  block.norm = {.kind = nn::NormKind::layer, .eps = c.eps};
  block.norm_place = nn::NormPlace::post;
  return nn::named_as_bert(std::move(block));
}

nn::InitRule normal_weights(float std) {
  return [std](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() >= 2) {
      return nn::Init::normal(std);
    }
    return name.ends_with("bias") ? nn::Init::zeros() : own;
  };
}

}  // namespace

BlipText::BlipText(const nn::Scope& scope, const BlipTextConfig& config) : config_(config), path_(scope.path()) {
  check(config_.dim % config_.num_heads == 0, "{}: the width {} cannot be divided among {} heads", path_, config_.dim,
        config_.num_heads);
  const nn::Scope root = scope.with_init(normal_weights(config_.init_std));
  embedding_.emplace(root / "embeddings" / "word_embeddings", config_.vocab_size, config_.dim, nn::Init::normal(1),
                     config_.padding);
  positions_.emplace(root / "embeddings" / "position_embeddings",
                     TextPositionsConfig{.added = nn::TokenPositionKind::learned}, config_.max_positions, config_.dim);
  norm_.emplace(root / "embeddings" / "LayerNorm", config_.dim,
                nn::NormConfig{.kind = nn::NormKind::layer, .eps = config_.eps});
  const nn::DecoderBlockConfig block = block_of(config_);
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(root / "encoder" / "layer" / i, block);
  }
}

BlipText::Sources BlipText::remember(const Tensor& context, const Tensor& lengths, const Tensor& rows) const {
  const auto chosen = [&](const Tensor& x) {
    return rows.defined() && x.defined() ? ops::index_select(x, 0, rows) : x;
  };
  const Tensor own_lengths = chosen(lengths);
  Sources sources;
  sources.reserve(blocks_.size());
  for (const nn::DecoderBlock& block : blocks_) {
    const nn::Memory memory = block.cross.remember(context);
    sources.push_back({{chosen(memory.keys), chosen(memory.values)}, own_lengths, {}, {}});
  }
  return sources;
}

Tensor BlipText::operator()(const Texts& texts, const Sources& sources, bool causal, nn::Pass& pass,
                            CrossDecoderState* state) const {
  check_token_ids(texts.ids, config_.vocab_size);
  const std::int64_t begin = state != nullptr ? state->length() : 0;
  const std::int64_t longest = begin + longest_text(texts);
  check(longest <= config_.max_positions, "the text has {} tokens, but the model is made for at most {}", longest,
        config_.max_positions);
  if (state != nullptr) {
    state->texts.extend(texts.ids.size(0), texts.ids.size(1));
  }
  Tensor x = (*norm_)(positions_->add_to((*embedding_)(texts.ids), begin, texts.offsets));
  x = nn::Dropout{config_.drop}(ops::cast(x, pass.dtype), pass);
  nn::AttentionExtras own;
  own.causal = causal;
  own.lengths = texts.lengths;
  own.query_offsets = texts.offsets;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    own.cache = state != nullptr ? &state->blocks[i] : nullptr;
    x = blocks_[i](x, sources[i], pass, own);
    if (pass.wants_features()) {
      pass.recorder->feature(fmt::format("{}.encoder.layer.{}", path_, i), x);
    }
  }
  return x;
}

std::int64_t BlipText::flops(std::int64_t tokens, std::int64_t context) const {
  std::int64_t total = norm_->flops(tokens);
  for (const nn::DecoderBlock& block : blocks_) {
    total += block.flops(tokens, context);
  }
  return total;
}

std::string BlipText::cross_attention_name(std::int64_t layer) const {
  return fmt::format("{}.encoder.layer.{}.crossattention", path_, layer);
}

}  // namespace vitrail::models
