#include "vitrail/models/text/decoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

nn::BlockConfig block_config(const DecoderConfig& config, std::int64_t index) {
  nn::BlockConfig block = config.block;
  if (config.scale_by_inverse_layer) {
    block.attention.scale = nn::scale_of(block.attention) / static_cast<float>(index + 1);
  }
  return block;
}

// The places of the last `count` tokens of texts, which have been added to them: [N] i64 if all are equally long,
// otherwise those of each text, [B, N].
Tensor places_of(const nn::TextSlots* texts, std::int64_t count) {
  std::vector<std::int64_t> begins = {0};
  if (texts != nullptr) {
    begins.clear();
    begins.reserve(static_cast<std::size_t>(texts->texts()));
    for (std::int64_t b = 0; b < texts->texts(); ++b) {
      begins.push_back(texts->length(b) - count);
    }
  }
  const bool alike = std::ranges::all_of(begins, [&](std::int64_t begin) { return begin == begins.front(); });
  begins.resize(alike ? 1 : begins.size());
  Tensor places = Tensor::empty({std::ssize(begins), count}, DType::i64);
  std::int64_t* out = places.data<std::int64_t>();
  for (const std::int64_t begin : begins) {
    for (std::int64_t n = begin; n < begin + count; ++n) {
      *out++ = n;
    }
  }
  return alike ? places.reshape({count}) : places;
}

// The mask [N, M] of the last N of M tokens, of which each sees the last `window`.
Tensor window_mask(std::int64_t queries, std::int64_t keys, std::int64_t window) {
  Tensor mask = Tensor::empty({queries, keys}, DType::boolean);
  bool* out = mask.data<bool>();
  for (std::int64_t i = keys - queries; i < keys; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      *out++ = j > i - window;
    }
  }
  return mask;
}

}  // namespace

nn::InitRule gpt_init(float std, const std::vector<std::string>& back, float scale) {
  return [=](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() < 2) {
      return name.ends_with("bias") ? nn::Init::zeros() : own;
    }
    const bool ends = std::ranges::any_of(back, [&](const std::string& weight) { return name.ends_with(weight); });
    return nn::Init::normal(std).scaled(ends ? scale : 1.0F);
  };
}

void DecoderState::join(const TextState& other) {
  const auto& from = dynamic_cast<const DecoderState&>(other);
  const std::vector<std::int32_t> slots = texts.join(from.texts);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].join(from.blocks.at(i), slots);
  }
}

std::size_t DecoderState::bytes() const {
  std::size_t total = 0;
  for (const nn::KeyValueCache& cache : blocks) {
    total += cache.bytes();
  }
  return total;
}

Decoder::Decoder(const nn::Scope& scope, const DecoderConfig& config) : config_(config) {
  const nn::Scope root = scope.with_init(gpt_init(
      config_.init_std,
      {"." + config_.block.attention.names.value().proj + ".weight", "." + config_.block.mlp.names.fc2 + ".weight"},
      config_.scaled_init ? gpt_scale(config_.depth) : 1.0F));
  embedding_.emplace(root / config_.names.embedding, config_.vocab_size, config_.dim);
  positions_.emplace(root / config_.names.positions, config_.positions, config_.max_positions, config_.dim);
  if (config_.embedding_norm) {
    embedding_norm_.emplace(root / config_.names.embedding_norm, config_.dim, *config_.embedding_norm);
  }
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(root / config_.names.blocks / i, block_config(config_, i));
  }
  norm_.emplace(root / config_.names.norm, config_.dim, config_.norm);
  if (!config_.tied_head) {
    lm_head_.emplace(root / "lm_head", config_.dim, predicted(), false);
  }
}

Tensor Decoder::embed(const Texts& texts, const Tensor& places, nn::Pass& pass) const {
  const Tensor tokens = (*embedding_)(texts.ids);
  Tensor x =
      texts.offsets.defined() ? positions_->add_to(tokens, 0, texts.offsets) : positions_->add_at(tokens, places);
  if (embedding_norm_) {
    x = (*embedding_norm_)(x);
  }
  return nn::Dropout{config_.embd_drop}(ops::cast(x, pass.dtype), pass);
}

Tensor Decoder::forward_features(const Texts& texts, nn::Pass& pass, TextState* state) const {
  const Tensor& ids = texts.ids;
  check_token_ids(ids, config_.vocab_size);
  auto* const own_state = dynamic_cast<DecoderState*>(state);
  check(own_state != nullptr || state == nullptr, "a decoder goes on from its own state alone");
  const bool in_a_row = texts.offsets.defined();
  check(!in_a_row || state == nullptr, "texts in a row continue no others");
  const std::int64_t end = (state != nullptr ? state->length() : 0) + longest_text(texts);
  check(end <= config_.max_positions, "the text has {} tokens, but the model is made for at most {}", end,
        config_.max_positions);
  const bool windows = config_.sliding_window > 0 && end > config_.sliding_window;
  if (windows && in_a_row) {  // their mask is one of a single length
    return in_own_form(forward_features({ids_side_by_side(texts)}, pass), texts);
  }
  const nn::TextSlots* slots = nullptr;
  if (own_state != nullptr) {
    own_state->texts.extend(ids.size(0), ids.size(1));
    slots = &own_state->texts;
  }
  const Tensor places = in_a_row ? places_in_texts(texts.offsets) : places_of(slots, ids.size(1));
  nn::AttentionExtras extras;
  extras.causal = true;
  extras.query_offsets = texts.offsets;
  extras.distance_bias = pass.checkpoint ? Tensor() : positions_->distance_bias(end);
  extras.rotation = positions_->rotation_at(places);
  const Tensor mask = windows ? window_mask(ids.size(1), end, config_.sliding_window) : Tensor();
  Tensor x = embed(texts, places, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    nn::AttentionExtras own = extras;
    if (windows && (config_.slides.empty() || config_.slides[i])) {
      own.mask = mask;
      own.window = config_.sliding_window;
    }
    own.cache = own_state != nullptr ? &own_state->blocks[i] : nullptr;
    x = nn::run_block(in_block(blocks_[i], *positions_, own, end), std::move(x), pass);
    if (pass.wants_features()) {
      pass.recorder->feature(fmt::format("{}.{}", config_.names.blocks, i), x);
    }
  }
  return (*norm_)(x);
}

Tensor Decoder::forward_head(const Tensor& features) const {
  return ops::cast(lm_head_ ? (*lm_head_)(features) : embedding_->scores(features), DType::f32);
}

Tensor Decoder::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  return forward_head(forward_features({ids}, pass, state));
}

Tensor Decoder::forward_texts(const Texts& texts, nn::Pass& pass) const {
  return forward_head(forward_features(texts, pass));
}

Tensor Decoder::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  const Tensor features = forward_features({ids}, pass, &state);
  return forward_head(features.narrow(1, features.size(1) - 1, 1)).reshape({ids.size(0), predicted()});
}

std::size_t Decoder::state_bytes(std::int64_t tokens, DType dtype) const {
  const nn::AttentionConfig& one = blocks_.front().attn.config;
  const std::int64_t numbers = config_.depth * one.num_kv_heads * (one.key_dim + one.value_dim) * tokens;
  return static_cast<std::size_t>(numbers) * size_of(dtype);
}

std::int64_t Decoder::flops(std::int64_t tokens) const {
  std::int64_t total = tokens * config_.dim * predicted();
  for (const nn::Block& block : blocks_) {
    total += block.flops(tokens);
  }
  return total;
}

std::int64_t Decoder::layer_of(const std::string& parameter) const {
  const std::string blocks = config_.names.blocks + ".";
  if (parameter.starts_with(blocks)) {
    std::int64_t index = 0;
    std::from_chars(parameter.data() + blocks.size(), parameter.data() + parameter.size(), index);
    return index + 1;
  }
  for (const std::string* name : {&config_.names.embedding, &config_.names.positions, &config_.names.embedding_norm}) {
    if (!name->empty() && parameter.starts_with(*name + ".")) {
      return 0;
    }
  }
  return config_.depth + 1;
}

TextShape shape_of(const Decoder& decoder) {
  const DecoderConfig& c = decoder.config();
  const nn::AttentionConfig& attention = c.block.attention;
  return {.vocab_size = c.vocab_size,
          .max_positions = c.max_positions,
          .depth = c.depth,
          .dim = c.dim,
          .num_heads = attention.num_heads,
          .num_kv_heads = attention.num_kv_heads > 0 ? attention.num_kv_heads : attention.num_heads};
}

}  // namespace vitrail::models
