/// \file
/// The encoder–decoder transformer (Vaswani et al. 2017), which turns a text into another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/cross_decoder.h"
#include "vitrail/models/text/encoder.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The sizes and parts of an EncoderDecoder.
struct EncoderDecoderConfig {
  EncoderConfig encoder;  ///< without an embedding: it is given embedded tokens
  std::int64_t source_vocab_size = 0;
  std::string source_embedding;  ///< its name; of both texts, if they share it
  bool shared_embedding = true;  ///< both texts have one embedding; the vocabularies are then of one size
  std::int64_t padding = -1;     ///< an id whose embedding gets no gradient where it is looked up; -1: none
  /// Width, positions, scale and dropout of embedded tokens, and the longest text are the encoder's.
  CrossDecoderConfig decoder;
};

/// The encoder–decoder transformer: the encoder reads a source, and the decoder predicts the next token of its
/// translation from the tokens so far and from all that the encoder has made of the source (memory).
///
/// Scale of embedded tokens, kind of positions, dropout and the longest text are the encoder's, for both texts; what is
/// learned of positions, each of the two has by itself.
/// Weights start as those of the paper's implementation (tensor2tensor): matrices from Glorot's uniform distribution,
/// embeddings as N(0, 1 / dim), biases as zeros.
class EncoderDecoder final : public Translator {
 public:
  EncoderDecoder(const nn::Scope& scope, const EncoderDecoderConfig& config);

  /// What the encoder makes of sources [B, M]: the memory [B, M, dim].
  Tensor encode(const Texts& sources, nn::Pass& pass) const;
  /// The last states [B, N, dim] of a decoder that reads targets [B, N] beside such a memory. Of sources in one row,
  /// the targets lie in one row too.
  Tensor decode(const Texts& targets, const Tensor& memory, const Texts& sources, nn::Pass& pass) const;
  /// The logits [..., V] of states [..., dim], in their dtype.
  Tensor head(const Tensor& states) const { return decoder_->head(states); }
  Tensor logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const override;
  std::unique_ptr<TextState> begin(const Texts& sources, nn::Pass& pass,
                                   std::optional<DType> cache = std::nullopt) const override;
  Tensor forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const override;

  const EncoderDecoderConfig& config() const { return config_; }
  std::int64_t source_vocab_size() const override { return config_.source_vocab_size; }
  std::int64_t target_vocab_size() const override { return config_.decoder.vocab_size; }
  std::size_t state_bytes(std::int64_t source, std::int64_t tokens, DType dtype) const override {
    return decoder_->state_bytes(source, tokens, dtype);
  }
  std::int64_t max_positions() const override { return config_.encoder.max_positions; }
  bool has_attention() const override { return true; }
  std::int64_t flops(std::int64_t source, std::int64_t target) const override;
  /// 0 for embeddings, then the encoder's blocks, then the decoder's, then the head (nn::Network::layer_of()).
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with(config_.decoder.names.head + "."); }

 private:
  EncoderDecoderConfig config_;
  std::optional<nn::Embedding> source_embedding_;
  std::optional<Encoder> encoder_;
  std::optional<CrossDecoder> decoder_;
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
