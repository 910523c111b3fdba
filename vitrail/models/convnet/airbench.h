/// \file
/// The convolutional network of airbench94, made to learn CIFAR-10 in the fewest operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// The values of `hyp['net']` under their names, and the usual arguments.
struct AirbenchConfig {
  std::vector<std::int64_t> widths = {64, 256, 256};  ///< channels of each group
  double batchnorm_momentum = 0.6;                    ///< share of the running statistics that stays, 1 - torch's
  double scaling_factor = 1.0 / 9;                    ///< of the logits
  std::int64_t whiten_kernel_size = 2;
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  std::int64_t in_chans = 3;
  nn::Size2 img_size = {32, 32};
};

/// BatchNorm2d whose scale stays as it is: the buffer `weight`, at first ones. Its other names are BatchNorm2d's.
struct BiasNorm {
  BiasNorm(const nn::Scope& scope, std::int64_t channels, float momentum);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;

  float momentum;  ///< torch's
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;
};

/// x [B, C, H, W] → gelu(norm2(conv2(gelu(norm1(pool(conv1(x))))))) [B, C', H / 2, W / 2]. The convolutions are 3 x 3
/// without bias; their first filters start as the identity, those beyond the number of inputs at random.
struct AirbenchGroup {
  AirbenchGroup(const nn::Scope& scope, std::int64_t in, std::int64_t out, float momentum);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;

  nn::Conv2d conv1;
  BiasNorm norm1;
  nn::Conv2d conv2;
  BiasNorm norm2;
};

/// "94% on CIFAR-10 in 3.29 Seconds on a Single GPU" (Jordan 2024; github.com/KellerJordan/cifar10-airbench):
///
/// ```text
/// gelu(whitening(x) + b) → groups, each of half the size of the one before → max over 3 x 3 → head · scaling_factor
/// ```
///
/// The whitening filters are a buffer, which training leaves alone: whiten() sets them from images. Parameters have the
/// names of the reference's Sequential: `0.weight`, `0.bias`, `2.conv1.weight`, `2.norm1.bias` … `7.weight`.
class Airbench {
 public:
  /// Throws Error if images of this size leave nothing for the head.
  Airbench(const nn::Scope& scope, const AirbenchConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, C', H', W'], of the last group
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const;
  std::int64_t depth() const { return static_cast<std::int64_t>(groups_.size()); }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter == head_name_; }
  bool takes_any_size() const { return false; }
  bool has_attention() const { return false; }

  /// Sets the filters of the first layer from images [N, C, H, W], which are prepared as for evaluation.
  void whiten(const Tensor& images) const;
  const std::string& whitening_bias() const { return whitening_bias_; }  ///< the parameter that belongs to them

 private:
  AirbenchConfig config_;
  nn::Size2 features_size_ = {0, 0};
  Tensor whitening_;
  Tensor bias_;
  std::string whitening_bias_;
  std::vector<AirbenchGroup> groups_;
  std::vector<std::string> group_names_;
  std::optional<nn::Linear> head_;
  std::string head_name_;
};

/// The filters [2 D, C, K, K], D = C K², that whiten patches of K x K pixels of the images [N, C, H, W]: the
/// eigenvectors of the patches' second moments by falling eigenvalue λ, each divided by √(λ + eps), and then their
/// negatives (Jordan 2024, section 3.2). The sign of an eigenvector is such that its entry of largest magnitude is
/// positive.
Tensor whitening_filters(const Tensor& images, std::int64_t kernel_size, double eps = 5e-4);

}  // namespace vitrail::models
