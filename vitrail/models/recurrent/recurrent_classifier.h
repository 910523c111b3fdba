/// \file
/// Recurrent networks that tell classes of texts, or of their tokens, apart.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/models/recurrent/recurrent_language.h"
#include "vitrail/models/text/text_classifier.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// A recurrent network between an embedding and a classifier: of each token's output, or of a text's state behind its
/// last token (in both directions: behind its first, too). Texts of unequal length cost no padding. Parameters are
/// `encoder.weight`, `rnn.weight_ih_l0` …, `classifier.weight` and `classifier.bias`.
struct RecurrentClassifier final : TextNetwork, TextClassifier {
  RecurrentClassifier(const RecurrentLanguageConfig& config, std::int64_t num_labels, bool each_token,
                      const nn::StoreOptions& store = {});

  Tensor classify(const EncoderInput& input, nn::Pass& pass) const override;
  std::int64_t num_labels() const override { return head.out_features(); }
  bool each_token() const override { return of_tokens; }

  TextShape shape() const override { return shape_of(config); }
  std::int64_t flops(std::int64_t tokens) const override;
  /// Gives logits [B, C] or [B, N, C].
  TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const override;
  const TextClassifier* classifier() const override { return this; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("classifier."); }

  const RecurrentLanguageConfig config;
  const bool of_tokens;
  const TokenVectors vectors;
  const nn::Recurrent network;
  const nn::Linear head;
};

}  // namespace vitrail::models
