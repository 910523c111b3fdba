/// \file
/// What convolutional networks do with feature maps x [B, C, H, W] between their convolutions. Feature maps lie in
/// channels-last memory there, and all of these functions keep them so: the general ops of the same names would put
/// them in row-major order.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// act(x + residual). `residual`, which has x's shape, may be undefined.
Tensor activate_image(const Tensor& x, ops::Activation activation, const Tensor& residual = {});
/// Pads x with `before` and `after` rows and columns of `value`.
Tensor pad_image(const Tensor& x, const Size2& before, const Size2& after, float value = 0);
/// Pads x for a square kernel as ConvStyle::same_padding says.
Tensor pad_same(const Tensor& x, std::int64_t kernel, std::int64_t stride, float value = 0);
/// Stochastic depth for feature maps.
Tensor drop_path_image(const Tensor& x, const DropPath& drop, Pass& pass);
/// The mean, the largest, or half the sum of both for each channel: [B, C, H, W] → [B, C]. Pool::none returns x.
Tensor pool_image(const Tensor& x, Pool pool);
/// fvcore's count of pool_image() for C channels of `size`: adaptive average pooling counts one flop per element, the
/// rest nothing.
std::int64_t pool_flops(std::int64_t channels, const Size2& size, Pool pool);

/// The kinds of Norm2d: batch or group normalization.
enum class Norm2dKind { batch, group };
/// The normalization of feature maps that a model's config asks for: BatchNorm2d or GroupNorm.
class Norm2d {
 public:
  Norm2d(const Scope& scope, std::int64_t channels, Norm2dKind kind);
  /// Returns act(norm(x)).
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity) const;
  std::int64_t flops(const Size2& size) const {
    return std::visit([&](const auto& norm) { return norm.flops(size); }, norm_);
  }

 private:
  std::variant<BatchNorm2d, GroupNorm> norm_;
};

/// A convolution without bias and the batch normalization of its result.
struct ConvNorm {
  ConvNorm(const Scope& conv_scope, const Scope& norm_scope, std::int64_t in, std::int64_t out, const Size2& kernel,
           const ops::ConvOptions& options = {});
  /// act(norm(conv(x)) + residual), x [B, in, H, W] → [B, out, H', W']. In inference, where the norm's statistics are
  /// fixed, the norm is folded into the convolution's weight, which is done again only when one of the tensors has
  /// changed. A residual that is moved in may then become the result.
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity,
                    Tensor residual = {}) const;
  /// fvcore's count for an input of `size`, which is set to the output's size.
  std::int64_t flops(Size2& size) const;

  Conv2d conv;
  BatchNorm2d norm;

 private:
  struct Folded;
  std::shared_ptr<Folded> folded_;
};

/// Squeeze-and-Excitation (Hu et al. 2018; timm's SEModule), x [B, C, H, W] → the same shape:
///
/// ```text
/// x ⊙ σ(fc2(relu(fc1(mean over the pixels of x))))
/// ```
///
/// Parameters `fc1.weight` [hidden, C, 1, 1], `fc2.weight` [C, hidden, 1, 1] and their biases.
struct SqueezeExcite {
  SqueezeExcite(const Scope& scope, std::int64_t channels, std::int64_t hidden);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops() const { return fc1.flops(1, 1) + fc2.flops(1, 1); }

  Conv2d fc1;
  Conv2d fc2;
};

}  // namespace vitrail::nn
