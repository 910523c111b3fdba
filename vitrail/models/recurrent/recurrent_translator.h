/// \file
/// Recurrent networks that turn a text into another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/recurrent/recurrent_decoder.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// The sizes and parts of a RecurrentTranslator.
struct RecurrentTranslatorConfig {
  nn::RecurrentConfig network;  ///< of the decoder; the encoder's too, which alone can read in both directions
  std::int64_t source_vocab_size = 0;
  std::int64_t target_vocab_size = 0;
  std::int64_t embedding_size = 0;
  bool shared_embedding = true;     ///< both texts have one embedding; the vocabularies are then of one size
  bool tied_head = false;           ///< the head's weight is that of the target's embedding
  bool reverse_source = false;      ///< sources are read from their ends (Sutskever et al. 2014, section 3.3)
  std::int64_t attention_size = 0;  ///< of the layer that scores the source's tokens; 0: there is no attention
};

/// Two recurrent networks, of which one reads the source, and the other begins with the state that the first has come
/// to and writes the translation (Sutskever et al. 2014), with attention looking at all states of the first one
/// (Bahdanau et al. 2015): RecurrentDecoder has its equations. From a reader in both directions it begins, in each
/// layer, with
///
/// ```text
/// h = tanh(W_h [→h; ←h] + b_h),   c = W_c [→c; ←c] + b_c
/// ```
///
/// In training, dropout acts on embedded tokens and between the layers. Parameters: `encoder.embedding.weight` (of both
/// texts, if they share it), `encoder.rnn.…`, `bridge.h.{layer}.…`, `bridge.c.{layer}.…`, `decoder.…`.
class RecurrentTranslator final : public Translator {
 public:
  /// Throws Error if the config contradicts itself.
  RecurrentTranslator(const nn::Scope& scope, const RecurrentTranslatorConfig& config);

  Tensor logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const override {
    return decoder_->logits(targets, read(sources, pass), pass);
  }
  std::unique_ptr<TextState> begin(const Texts& sources, nn::Pass& pass,
                                   std::optional<DType> /*cache*/ = std::nullopt) const override {
    return decoder_->begin(read(sources, pass));
  }
  Tensor forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const override {
    return decoder_->forward_last(targets, pass, state);
  }
  std::int64_t source_vocab_size() const override { return config_.source_vocab_size; }
  std::int64_t target_vocab_size() const override { return config_.target_vocab_size; }
  std::int64_t max_positions() const override { return unbounded_positions; }
  std::size_t state_bytes(std::int64_t source, std::int64_t /*tokens*/, DType dtype) const override {
    return decoder_->state_bytes(source, dtype);
  }
  bool keeps_keys() const override { return false; }
  bool has_attention() const override { return decoder_->has_attention(); }

  const RecurrentTranslatorConfig& config() const { return config_; }
  std::int64_t flops(std::int64_t source, std::int64_t target) const override;

 private:
  RecurrentDecoder::Start read(const Texts& sources, nn::Pass& pass) const;
  nn::RecurrentState bridged(const nn::RecurrentState& state) const;

  RecurrentTranslatorConfig config_;
  std::optional<TokenVectors> vectors_;  // of the source
  std::optional<nn::Recurrent> encoder_;
  std::vector<nn::Linear> bridge_h_;  // for each layer, of a reader in both directions
  std::vector<nn::Linear> bridge_c_;  // and of cells with a memory
  std::optional<RecurrentDecoder> decoder_;
};

/// A RecurrentTranslator as a network of its own.
struct RecurrentTranslatorNetwork final : TextNetwork {
  explicit RecurrentTranslatorNetwork(const RecurrentTranslatorConfig& config, const nn::StoreOptions& store = {})
      : TextNetwork(store), body(nn::Scope(parameters), config) {}

  TextShape shape() const override;
  /// For a source and a target of this many tokens each.
  std::int64_t flops(std::int64_t tokens) const override { return body.flops(tokens, tokens); }
  TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const override {
    return run_translator(body, inputs, pass);
  }
  TextAttentionKind attention_kind(const std::string& /*name*/) const override { return TextAttentionKind::cross; }
  const Translator* translator() const override { return &body; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder.out."); }

  const RecurrentTranslator body;
};

}  // namespace vitrail::models
