#include "vitrail/models/text/encoder_decoder.h"

#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail::models {
namespace {

nn::InitRule paper_init(const EncoderDecoderConfig& config) {
  const float std = 1 / std::sqrt(static_cast<float>(config.encoder.dim));
  const std::string source = config.names.source_embedding + ".weight";
  const std::string target = config.names.target_embedding + ".weight";
  return [=](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() < 2) {
      return name.ends_with("bias") ? nn::Init::zeros() : own;
    }
    return name == source || name == target ? nn::Init::normal(std) : nn::Init::xavier_uniform(shape);
  };
}

Tensor rows_at(const Tensor& x, const std::vector<std::int64_t>& indices) {
  return x.defined() ? ops::index_select(x, 0, Tensor::from(indices, {std::ssize(indices)})) : x;
}

}  // namespace

void EncoderDecoderState::select(const std::vector<std::int64_t>& indices) {
  const auto [left, each] = sources_left(indices, translations);
  texts.select(indices);
  translations = each;
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

std::size_t EncoderDecoderState::bytes() const {
  std::size_t total = 0;
  for (const nn::KeyValueCache& cache : blocks) {
    total += cache.bytes();
  }
  for (const nn::DecoderBlock::Source& source : sources) {
    total += source.memory.keys.bytes() + source.memory.values.bytes();
  }
  return total;
}

EncoderDecoder::EncoderDecoder(const nn::Scope& scope, const EncoderDecoderConfig& config) : config_(config) {
  const nn::Scope root = scope.with_init(paper_init(config_));
  const std::int64_t dim = config_.encoder.dim;
  const EncoderDecoderNames& names = config_.names;
  check(!config_.shared_embedding || config_.source_vocab_size == config_.target_vocab_size,
        "{}: an embedding cannot be shared by vocabularies of {} and {} tokens", root.path(), config_.source_vocab_size,
        config_.target_vocab_size);
  source_embedding_.emplace(root / names.source_embedding, config_.source_vocab_size, dim, nn::Init::normal(1),
                            config_.padding);
  if (!config_.shared_embedding) {
    target_embedding_.emplace(root / names.target_embedding, config_.target_vocab_size, dim, nn::Init::normal(1),
                              config_.padding);
  }
  encoder_.emplace(root, config_.encoder);
  TextPositionsConfig places = config_.encoder.positions;
  if (places.bias) {
    places.bias->bidirectional = false;
    places.bias->num_heads = config_.block.attention.num_heads;
  }
  positions_.emplace(root / names.positions, places, config_.encoder.max_positions, dim);
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(root / names.blocks / i, config_.block);
  }
  if (config_.norm) {
    norm_.emplace(root / names.norm, dim, *config_.norm);
  }
  const std::int64_t vocab = config_.target_vocab_size;
  if (!config_.tied_head) {
    head_.emplace(root / names.head, dim, vocab, config_.head_bias);
  } else if (config_.head_bias) {
    tied_bias_ = (root / names.head).parameter("bias", {vocab}, nn::Init::zeros());
  }
  if (!config_.head_bias && config_.logits_bias) {
    (head_ ? head_->bias : tied_bias_) =
        root.buffer("final_logits_bias", {1, vocab}, nn::Init::zeros()).reshape({vocab});
  }
}

Tensor EncoderDecoder::encode(const Texts& sources, nn::Pass& pass) const {
  check_token_ids(sources.ids, config_.source_vocab_size);
  return (*encoder_)(
      {.lengths = sources.lengths, .embedded = (*source_embedding_)(sources.ids), .offsets = sources.offsets}, pass);
}

std::vector<nn::DecoderBlock::Source> EncoderDecoder::remember(const Tensor& memory, const Texts& sources) const {
  std::vector<nn::DecoderBlock::Source> result;
  for (const nn::DecoderBlock& block : blocks_) {
    result.push_back({block.cross.remember(memory), sources.lengths, sources.offsets});
  }
  return result;
}

Tensor EncoderDecoder::run_decoder(const Texts& targets, const std::vector<nn::DecoderBlock::Source>& sources,
                                   EncoderDecoderState* state, nn::Pass& pass) const {
  check_token_ids(targets.ids, config_.target_vocab_size);
  const std::int64_t begin = state != nullptr ? state->length() : 0;
  const std::int64_t most = config_.encoder.max_positions;
  const std::int64_t longest = begin + longest_text(targets);
  check(longest <= most, "the translation has {} tokens, but the model is made for at most {}", longest, most);
  if (state != nullptr) {
    state->texts.extend(targets.ids.size(0), targets.ids.size(1));
  }
  Tensor x = target_embedding()(targets.ids);
  if (config_.encoder.embedding_scale != 1) {
    x = x * config_.encoder.embedding_scale;
  }
  x = positions_->add_to(x, begin, targets.offsets);
  x = nn::Dropout{config_.encoder.embd_drop}(ops::cast(x, pass.dtype), pass);
  nn::AttentionExtras own;
  own.causal = true;
  own.query_offsets = targets.offsets;
  own.rotation = positions_->rotation(begin, targets.ids.size(1), targets.offsets);
  own.distance_bias = positions_->distance_bias(longest);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    own.cache = state != nullptr ? &state->blocks[i] : nullptr;
    x = blocks_[i](x, sources[i], pass, own);
    if (pass.wants_features()) {
      pass.recorder->feature(fmt::format("{}.{}", config_.names.blocks, i), x);
    }
  }
  return norm_ ? (*norm_)(x) : x;
}

Tensor EncoderDecoder::decode(const Texts& targets, const Tensor& memory, const Texts& sources, nn::Pass& pass) const {
  return run_decoder(targets, remember(memory, sources), nullptr, pass);
}

Tensor EncoderDecoder::head(const Tensor& states) const {
  return head_ ? (*head_)(states) : target_embedding().scores(states, tied_bias_);
}

Tensor EncoderDecoder::logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const {
  return head(decode(targets, encode(sources, pass), sources, pass));
}

std::unique_ptr<TextState> EncoderDecoder::begin(const Texts& sources, nn::Pass& pass,
                                                 std::optional<DType> cache) const {
  auto state = std::make_unique<EncoderDecoderState>(blocks_.size(), cache);
  state->sources = remember(encode(sources, pass), sources);
  if (sources.offsets.defined()) {  // the translations of a batch do not end together
    const Tensor lengths = lengths_side_by_side(sources);
    for (nn::DecoderBlock::Source& source : state->sources) {
      source = {{states_side_by_side(source.memory.keys, sources), states_side_by_side(source.memory.values, sources)},
                lengths};
    }
  }
  return state;
}

Tensor EncoderDecoder::forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const {
  auto* const own = dynamic_cast<EncoderDecoderState*>(&state);
  check(own != nullptr, "an encoder–decoder goes on from its own state alone");
  const Tensor states = run_decoder({targets}, own->sources, own, pass);
  const Tensor logits = head(states.narrow(1, states.size(1) - 1, 1));
  return ops::cast(logits, DType::f32).reshape({targets.size(0), config_.target_vocab_size});
}

std::int64_t EncoderDecoder::flops(std::int64_t source, std::int64_t target) const {
  std::int64_t total = encoder_->flops(source) + target * config_.encoder.dim * config_.target_vocab_size;
  for (const nn::DecoderBlock& block : blocks_) {
    total += block.flops(target, source);
  }
  return total + (norm_ ? norm_->flops(target) : 0);
}

std::int64_t EncoderDecoder::layer_of(const std::string& parameter) const {
  const std::int64_t encoders = config_.encoder.depth;
  for (const std::string* name : {&config_.names.source_embedding, &config_.names.target_embedding,
                                  &config_.encoder.names.positions, &config_.names.positions}) {
    if (!name->empty() && parameter.starts_with(*name + ".")) {
      return 0;
    }
  }
  if (const auto block = index_after(parameter, config_.encoder.names.blocks + ".")) {
    return *block + 1;
  }
  if (const auto block = index_after(parameter, config_.names.blocks + ".")) {
    return encoders + *block + 1;
  }
  const bool of_encoder = config_.encoder.norm && parameter.starts_with(config_.encoder.names.norm + ".");
  return of_encoder ? encoders : encoders + config_.depth + 1;
}

std::size_t EncoderDecoder::state_bytes(std::int64_t source, std::int64_t tokens, DType dtype) const {
  return static_cast<std::size_t>(2 * config_.depth * config_.encoder.dim * (source + tokens)) * size_of(dtype);
}

TextAttentionKind EncoderDecoderNetwork::attention_kind(const std::string& name) const {
  if (name.starts_with(body.config().encoder.names.blocks + ".")) {
    return TextAttentionKind::self;
  }
  return name.ends_with("." + body.config().block.names.cross) ? TextAttentionKind::cross : TextAttentionKind::decoder;
}

std::vector<std::string> EncoderDecoderNetwork::vocabulary_weights() const {
  const EncoderDecoderNames& names = body.config().names;
  return {names.source_embedding + ".weight", names.target_embedding + ".weight", names.head + ".weight"};
}

TextShape EncoderDecoderNetwork::shape() const {
  const EncoderDecoderConfig& c = body.config();
  const nn::AttentionConfig& attention = c.block.attention;
  return {.vocab_size = c.target_vocab_size,
          .max_positions = c.encoder.max_positions,
          .depth = c.encoder.depth + c.depth,
          .dim = c.encoder.dim,
          .num_heads = attention.num_heads,
          .num_kv_heads = attention.num_kv_heads > 0 ? attention.num_kv_heads : attention.num_heads};
}

}  // namespace vitrail::models
