/// \file
/// Decoders that tell classes of texts apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/text/decoder.h"
#include "vitrail/models/text/text_classifier.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// A Decoder whose state of a text's last token is mapped to logits of classes, as transformers'
/// GPT2ForSequenceClassification. Its parameter beside the decoder's is `score.weight` [num_labels, dim].
struct DecoderClassifier final : TextNetwork, TextClassifier {
  /// Throws Error if the decoder has a head of its own.
  DecoderClassifier(const DecoderConfig& config, std::int64_t num_labels, const nn::StoreOptions& store = {});

  Tensor classify(const EncoderInput& input, nn::Pass& pass) const override;
  std::int64_t num_labels() const override { return score.out_features(); }
  bool each_token() const override { return false; }

  TextShape shape() const override { return shape_of(body); }
  std::int64_t flops(std::int64_t tokens) const override;
  /// Gives logits [B, C].
  TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const override;
  const TextClassifier* classifier() const override { return this; }
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("score."); }

  const Decoder body;
  const nn::Linear score;
};

}  // namespace vitrail::models
