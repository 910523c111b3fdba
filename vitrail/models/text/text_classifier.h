/// \file
/// What all models that tell classes of texts or of tokens apart have in common.
#pragma once

#include <cstdint>

#include "vitrail/models/text/encoder.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// A network that gives each text, or each of its tokens, a logit for each of its classes.
class TextClassifier {
 public:
  virtual ~TextClassifier() = default;
  TextClassifier() = default;
  TextClassifier(const TextClassifier&) = delete;
  TextClassifier& operator=(const TextClassifier&) = delete;

  /// The logits f32 of S texts: [S, C], or of a classifier of tokens [B, N, C], where those of padding are of no use.
  virtual Tensor classify(const EncoderInput& input, nn::Pass& pass) const = 0;
  virtual std::int64_t num_labels() const = 0;  ///< C
  virtual bool each_token() const = 0;          ///< whether it is a classifier of tokens
};

}  // namespace vitrail::models
