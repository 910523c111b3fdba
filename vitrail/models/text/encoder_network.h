/// \file
/// Encoders as networks of their own, with what BERT and its relatives have on top of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/text/encoder.h"
#include "vitrail/models/text/text_classifier.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/ops/math/activation.h"

namespace vitrail::models {

/// A dense layer on the first token's state: activation(dense(drop(y₀))).
struct PoolerConfig {
  std::string dense;  ///< its name
  ops::Activation activation = ops::Activation::tanh;
  float drop = 0;
};

/// The prediction of masked tokens: norm(activation(dense(y))) Eᵀ + bias, where E is the embedding of tokens.
struct MaskedHeadConfig {
  std::string dense;  ///< the names
  std::string norm;
  std::string bias;
  ops::Activation activation = ops::Activation::gelu;
  float eps = 1e-12F;
};

/// A linear map to classes: of the pooler's output, or of each token's state.
struct ClassifierConfig {
  std::string linear;  ///< its name
  std::int64_t num_labels = 0;
  bool each_token = false;
  float drop = 0;  ///< of what it maps
};

/// What stands on an encoder; any of it may be missing.
struct EncoderHeads {
  std::optional<PoolerConfig> pooler = std::nullopt;
  std::optional<MaskedHeadConfig> masked = std::nullopt;
  std::string next_sentence;  ///< the name of BERT's prediction whether the second text follows the first
  std::optional<ClassifierConfig> classifier = std::nullopt;
};

/// An Encoder with heads.
struct EncoderNetwork final : TextNetwork, TextClassifier {
  /// Weights start as N(0, init_std²), biases as zeros.
  EncoderNetwork(const EncoderConfig& config, const EncoderHeads& heads, float init_std,
                 const nn::StoreOptions& store = {});

  // What follows takes the states y [B, N, dim] that `body` gives of S texts (B of them, or those of a row). Each
  // throws Error if the network has no such head.

  /// The pooler's output [S, dim].
  Tensor pooled(const Tensor& states, const Texts& texts, nn::Pass& pass) const;
  /// The logits [..., vocab_size] f32 of the tokens that stand where the states [..., dim] are.
  Tensor masked_logits(const Tensor& states) const;
  /// The logits [S, 2] f32 that the second text follows the first (0), or does not (1).
  Tensor next_sentence_logits(const Tensor& states, const Texts& texts, nn::Pass& pass) const;
  /// The logits [S, C] or [B, N, C] f32 of classes.
  Tensor class_logits(const Tensor& states, const Texts& texts, nn::Pass& pass) const;

  Tensor classify(const EncoderInput& input, nn::Pass& pass) const override {
    return class_logits(body(input, pass), input.texts(), pass);
  }
  std::int64_t num_labels() const override { return heads.classifier->num_labels; }
  bool each_token() const override { return heads.classifier->each_token; }

  TextShape shape() const override;
  std::int64_t flops(std::int64_t tokens) const override;
  /// Gives logits, of a model for pretraining prediction_logits [B, N, V] and seq_relationship_logits [B, 2], of a bare
  /// one last_hidden_state [B, N, dim] and, if it has a pooler, pooler_output [B, dim].
  TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const override;
  const TextClassifier* classifier() const override { return heads.classifier ? this : nullptr; }
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool is_head(const std::string& parameter) const override;

  const EncoderHeads heads;
  const Encoder body;

 private:
  std::optional<nn::Linear> pooler_;
  std::optional<nn::Linear> transform_;
  std::optional<nn::Norm> transform_norm_;
  Tensor masked_bias_;
  std::optional<nn::Linear> next_sentence_;
  std::optional<nn::Linear> classifier_;
};

struct TextModel;

/// The model as an encoder, with its heads. Throws Error, naming its architecture, if it is none.
const EncoderNetwork& encoder_of(const TextModel& model);

}  // namespace vitrail::models
