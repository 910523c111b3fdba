/// \file
/// The encoder–decoder transformer (Vaswani et al. 2017), which turns a text into another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/encoder.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/nn/attention/decoder_block.h"
#include "vitrail/nn/attention/key_value_cache.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/linear.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The names of the parts of an EncoderDecoder, as in the reference implementation; those of its encoder are in its
/// config.
struct EncoderDecoderNames {
  std::string source_embedding;  ///< of both texts, if they share it
  std::string target_embedding;
  std::string positions;  ///< of what is learned of the decoder's positions
  std::string blocks;     ///< of the decoder, in front of their numbers
  std::string norm;       ///< behind the decoder's last block
  std::string head = "lm_head";
};

/// The sizes and parts of an EncoderDecoder.
struct EncoderDecoderConfig {
  EncoderConfig encoder;  ///< without an embedding: it is given embedded tokens
  std::int64_t source_vocab_size = 0;
  std::int64_t target_vocab_size = 0;
  bool shared_embedding = true;  ///< both texts have one embedding; the vocabularies are then of one size
  bool tied_head = true;         ///< the head's weight is that of the target's embedding
  bool head_bias = false;        ///< the head has a bias
  bool logits_bias = false;      ///< or there is a buffer `final_logits_bias` [1, V], which is added to the logits
  std::int64_t padding = -1;     ///< an id whose embedding gets no gradient where it is looked up; -1: none

  std::int64_t depth = 0;              ///< of the decoder
  nn::DecoderBlockConfig block;        ///< of all its blocks
  std::optional<nn::NormConfig> norm;  ///< behind its last block
  EncoderDecoderNames names;
};

/// What an EncoderDecoder keeps of translations: of each decoder's block the keys and values of the tokens so far, and
/// those of the sources. A source may have several translations, all equally many, which follow each other.
struct EncoderDecoderState final : TextState {
  EncoderDecoderState(std::size_t depth, std::optional<DType> cache) : blocks(depth, nn::KeyValueCache(texts, cache)) {}

  std::int64_t length() const override { return texts.length(); }
  /// Throws Error unless the sources that are left have equally many translations side by side.
  void select(const std::vector<std::int64_t>& indices) override;
  void drop_last(std::int64_t tokens) override { texts.drop_last(tokens); }
  std::size_t bytes() const override;

  nn::TextSlots texts;  ///< the translations
  std::vector<nn::KeyValueCache> blocks;
  std::vector<nn::DecoderBlock::Source> sources;  ///< for each block
  std::int64_t translations = 1;                  ///< of each source
};

/// The encoder–decoder transformer: the encoder reads a source, and the decoder predicts the next token of its
/// translation from the tokens so far and from all that the encoder has made of the source (memory).
///
/// Scale of embedded tokens, kind of positions, dropout and the longest text are the encoder's, for both texts; what is
/// learned of positions, each of the two has by itself. The decoder sees the source without positions between the two.
/// Weights start as those of the paper's implementation (tensor2tensor): matrices from Glorot's uniform distribution,
/// embeddings as N(0, 1 / dim), biases as zeros.
class EncoderDecoder final : public Translator {
 public:
  EncoderDecoder(const nn::Scope& scope, const EncoderDecoderConfig& config);

  /// What the encoder makes of sources [B, M]: the memory [B, M, dim].
  Tensor encode(const Texts& sources, nn::Pass& pass) const;
  /// The last states [B, N, dim] of a decoder that reads targets [B, N] beside such a memory. A token sees no later
  /// one, so that padding behind a target changes nothing, and targets need no lengths. Of sources in one row, the
  /// targets lie in one row too.
  Tensor decode(const Texts& targets, const Tensor& memory, const Texts& sources, nn::Pass& pass) const;
  /// The logits [..., V] of states [..., dim], in their dtype.
  Tensor head(const Tensor& states) const;
  Tensor logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const override;
  std::unique_ptr<TextState> begin(const Texts& sources, nn::Pass& pass,
                                   std::optional<DType> cache = std::nullopt) const override;
  Tensor forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const override;

  const EncoderDecoderConfig& config() const { return config_; }
  std::int64_t source_vocab_size() const override { return config_.source_vocab_size; }
  std::int64_t target_vocab_size() const override { return config_.target_vocab_size; }
  std::size_t state_bytes(std::int64_t source, std::int64_t tokens, DType dtype) const override;
  std::int64_t max_positions() const override { return config_.encoder.max_positions; }
  bool has_attention() const override { return true; }
  /// Multiply-accumulates of the products, for a source and a target of these many tokens.
  std::int64_t flops(std::int64_t source, std::int64_t target) const;
  /// 0 for embeddings, then the encoder's blocks, then the decoder's, then the head (nn::Network::layer_of()).
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with(config_.names.head + "."); }

 private:
  const nn::Embedding& target_embedding() const { return target_embedding_ ? *target_embedding_ : *source_embedding_; }
  std::vector<nn::DecoderBlock::Source> remember(const Tensor& memory, const Texts& sources) const;
  Tensor run_decoder(const Texts& targets, const std::vector<nn::DecoderBlock::Source>& sources,
                     EncoderDecoderState* state, nn::Pass& pass) const;

  EncoderDecoderConfig config_;
  std::optional<nn::Embedding> source_embedding_;
  std::optional<nn::Embedding> target_embedding_;  // unless it is the source's
  std::optional<Encoder> encoder_;
  std::optional<TextPositions> positions_;  // of the decoder
  std::vector<nn::DecoderBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;  // unless it is tied to the target's embedding
  Tensor tied_bias_;                // [V] of a head that is; or undefined
};

/// An EncoderDecoder as a network of its own.
struct EncoderDecoderNetwork final : TextNetwork {
  explicit EncoderDecoderNetwork(const EncoderDecoderConfig& config, const nn::StoreOptions& store = {})
      : TextNetwork(store), body(nn::Scope(parameters), config) {}

  TextShape shape() const override;
  /// For a source and a target of this many tokens each.
  std::int64_t flops(std::int64_t tokens) const override { return body.flops(tokens, tokens); }
  TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const override {
    return run_translator(body, inputs, pass);
  }
  const Translator* translator() const override { return &body; }
  TextAttentionKind attention_kind(const std::string& name) const override;
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool is_head(const std::string& parameter) const override { return body.is_head(parameter); }
  std::vector<std::string> vocabulary_weights() const override;

  const EncoderDecoder body;
};

}  // namespace vitrail::models
