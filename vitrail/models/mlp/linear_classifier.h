/// \file
/// The linear classifier of images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// The sizes of a LinearClassifier.
struct LinearClassifierConfig {
  std::int64_t num_classes = 1000;  ///< 0: no head, the pixels come out
  nn::Size2 img_size = {32, 32};
  std::int64_t in_chans = 3;
  double drop_rate = 0;  ///< of pixels
};

/// A linear map of the pixels of x [B, C, H, W], which is what every other model has to beat:
///
/// ```text
/// logits = W x + b
/// ```
///
/// Parameters are `head.weight` [num_classes, C · H · W] and `head.bias`.
class LinearClassifier {
 public:
  /// Throws Error if an image has more numbers than a layer can take.
  LinearClassifier(const nn::Scope& scope, const LinearClassifierConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< the pixels as one token, [B, 1, C · H · W]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.in_chans * config_.img_size[0] * config_.img_size[1]; }
  std::int64_t depth() const { return 0; }
  TokenLayout token_layout(std::int64_t /*height*/, std::int64_t /*width*/) const { return {0, 1, 1, false}; }
  std::int64_t flops(std::int64_t /*height*/, std::int64_t /*width*/) const { return head_ ? head_->flops(1) : 0; }
  std::int64_t layer_of(const std::string& /*parameter*/) const { return 1; }
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  bool takes_any_size() const { return false; }
  bool has_attention() const { return false; }

 private:
  LinearClassifierConfig config_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
