#include "vitrail/models/text/encoder_decoder.h"

#include <cmath>
#include <utility>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/text/token_ids.h"

namespace vitrail::models {
namespace {

nn::InitRule paper_init(const EncoderDecoderConfig& config) {
  const float std = 1 / std::sqrt(static_cast<float>(config.encoder.dim));
  const std::string source = config.source_embedding + ".weight";
  const std::string target = config.decoder.names.embedding + ".weight";
  return [=](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() < 2) {
      return name.ends_with("bias") ? nn::Init::zeros() : own;
    }
    return name == source || name == target ? nn::Init::normal(std) : nn::Init::xavier_uniform(shape);
  };
}

CrossDecoderConfig with_encoders_texts(CrossDecoderConfig decoder, const EncoderConfig& encoder) {
  decoder.max_positions = encoder.max_positions;
  decoder.dim = encoder.dim;
  decoder.positions = encoder.positions;
  if (decoder.positions.bias) {
    decoder.positions.bias->bidirectional = false;
    decoder.positions.bias->num_heads = decoder.block.attention.num_heads;
  }
  decoder.embedding_scale = encoder.embedding_scale;
  decoder.embd_drop = encoder.embd_drop;
  return decoder;
}

}  // namespace

EncoderDecoder::EncoderDecoder(const nn::Scope& scope, const EncoderDecoderConfig& config) : config_(config) {
  config_.decoder = with_encoders_texts(config.decoder, config.encoder);
  const nn::Scope root = scope.with_init(paper_init(config_));
  const std::int64_t dim = config_.encoder.dim;
  const CrossDecoderConfig& decoder = config_.decoder;
  check(!config_.shared_embedding || config_.source_vocab_size == decoder.vocab_size,
        "{}: an embedding cannot be shared by vocabularies of {} and {} tokens", root.path(), config_.source_vocab_size,
        decoder.vocab_size);
  source_embedding_.emplace(root / config_.source_embedding, config_.source_vocab_size, dim, nn::Init::normal(1),
                            config_.padding);
  const nn::Embedding target_embedding = config_.shared_embedding
                                             ? *source_embedding_
                                             : nn::Embedding(root / decoder.names.embedding, decoder.vocab_size, dim,
                                                             nn::Init::normal(1), config_.padding);
  encoder_.emplace(root, config_.encoder);
  decoder_.emplace(root, decoder, target_embedding);
}

Tensor EncoderDecoder::encode(const Texts& sources, nn::Pass& pass) const {
  check_token_ids(sources.ids, config_.source_vocab_size);
  return (*encoder_)(
      {.lengths = sources.lengths, .embedded = (*source_embedding_)(sources.ids), .offsets = sources.offsets}, pass);
}

Tensor EncoderDecoder::decode(const Texts& targets, const Tensor& memory, const Texts& sources, nn::Pass& pass) const {
  return (*decoder_)(targets, decoder_->remember(memory, sources.lengths, sources.offsets), pass, nullptr,
                     "translation");
}

Tensor EncoderDecoder::logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const {
  return head(decode(targets, encode(sources, pass), sources, pass));
}

std::unique_ptr<TextState> EncoderDecoder::begin(const Texts& sources, nn::Pass& pass,
                                                 std::optional<DType> cache) const {
  CrossDecoder::Sources kept = decoder_->remember(encode(sources, pass), sources.lengths, sources.offsets);
  if (sources.offsets.defined()) {  // the translations of a batch do not end together
    const Tensor lengths = lengths_side_by_side(sources);
    for (nn::DecoderBlock::Source& source : kept) {
      source = {{states_side_by_side(source.memory.keys, sources), states_side_by_side(source.memory.values, sources)},
                lengths};
    }
  }
  return std::make_unique<CrossDecoderState>(std::move(kept), cache);
}

Tensor EncoderDecoder::forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const {
  return decoder_->forward_last(targets, pass, state, "translation");
}

std::int64_t EncoderDecoder::flops(std::int64_t source, std::int64_t target) const {
  return encoder_->flops(source) + decoder_->flops(source, target);
}

std::int64_t EncoderDecoder::layer_of(const std::string& parameter) const {
  const std::int64_t encoders = config_.encoder.depth;
  for (const std::string* name : {&config_.source_embedding, &config_.decoder.names.embedding,
                                  &config_.encoder.names.positions, &config_.decoder.names.positions}) {
    if (!name->empty() && parameter.starts_with(*name + ".")) {
      return 0;
    }
  }
  if (const auto block = index_after(parameter, config_.encoder.names.blocks + ".")) {
    return *block + 1;
  }
  if (const auto block = index_after(parameter, config_.decoder.names.blocks + ".")) {
    return encoders + *block + 1;
  }
  const bool of_encoder = config_.encoder.norm && parameter.starts_with(config_.encoder.names.norm + ".");
  return of_encoder ? encoders : encoders + config_.decoder.depth + 1;
}

TextAttentionKind EncoderDecoderNetwork::attention_kind(const std::string& name) const {
  if (name.starts_with(body.config().encoder.names.blocks + ".")) {
    return TextAttentionKind::self;
  }
  return name.ends_with("." + body.config().decoder.block.names.cross) ? TextAttentionKind::cross
                                                                       : TextAttentionKind::decoder;
}

std::vector<std::string> EncoderDecoderNetwork::vocabulary_weights() const {
  const EncoderDecoderConfig& c = body.config();
  return {c.source_embedding + ".weight", c.decoder.names.embedding + ".weight", c.decoder.names.head + ".weight"};
}

TextShape EncoderDecoderNetwork::shape() const {
  const EncoderDecoderConfig& c = body.config();
  const nn::AttentionConfig& attention = c.decoder.block.attention;
  return {.vocab_size = c.decoder.vocab_size,
          .max_positions = c.encoder.max_positions,
          .depth = c.encoder.depth + c.decoder.depth,
          .dim = c.encoder.dim,
          .num_heads = attention.num_heads,
          .num_kv_heads = attention.num_kv_heads > 0 ? attention.num_kv_heads : attention.num_heads};
}

}  // namespace vitrail::models
