// What convolutional networks do with pictures x [B, C, H, W] between their convolutions. Pictures lie in channels-last
// memory there, and all of this keeps them so: the general ops of the same names would put them in row-major order.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "vitrail/nn/conv.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/pool.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// act(x + residual); `residual` of x's shape may be undefined.
Tensor activate_picture(const Tensor& x, ops::Activation activation, const Tensor& residual = {});
// x with `before` and `after` rows and columns of `value` around it.
Tensor pad_picture(const Tensor& x, const Size2& before, const Size2& after, float value = 0);
// x padded as ConvStyle::same_padding says for a square kernel.
Tensor pad_same(const Tensor& x, std::int64_t kernel, std::int64_t stride, float value = 0);
Tensor drop_path_picture(const Tensor& x, const DropPath& drop, Pass& pass);
// The mean, the largest, or half their sum of each channel: [B, C, H, W] → [B, C]; as it is for Pool::none.
Tensor pool_picture(const Tensor& x, Pool pool);
// fvcore's count of pool_picture for C channels of `size`: adaptive average pooling counts one an element.
std::int64_t pool_flops(std::int64_t channels, const Size2& size, Pool pool);

// Batch or group norm, whichever a model's config asks for.
enum class PictureNormKind { batch, group };
class PictureNorm {
 public:
  PictureNorm(const Scope& scope, std::int64_t channels, PictureNormKind kind);
  // act(norm(x))
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity) const;
  std::int64_t flops(const Size2& size) const {
    return std::visit([&](const auto& norm) { return norm.flops(size); }, norm_);
  }

 private:
  std::variant<BatchNorm2d, GroupNorm> norm_;
};

// A convolution and the batch norm behind it.
struct ConvNorm {
  ConvNorm(const Scope& conv_scope, const Scope& norm_scope, std::int64_t in, std::int64_t out, const Size2& kernel,
           const ops::ConvOptions& options = {});
  // act(norm(conv(x)) + residual): x [B, in, H, W] → [B, out, H', W']. In inference, where the norm's statistics are
  // fixed, it is folded into the convolution, once until one of them changes; then a residual that is moved in may
  // become the result.
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity,
                    Tensor residual = {}) const;
  // fvcore's count for pictures of `size`, which becomes that of the output.
  std::int64_t flops(Size2& size) const;

  Conv2d conv;
  BatchNorm2d norm;

 private:
  struct Folded;
  std::shared_ptr<Folded> folded_;
};

// Squeeze-and-Excitation (Hu et al. 2018), timm's SEModule, x [B, C, H, W] → the same shape:
//   x ⊙ σ(fc2(relu(fc1(mean over the pixels of x)))).
// Parameters `fc1.weight` [hidden, C, 1, 1], `fc2.weight` [C, hidden, 1, 1] and their biases.
struct SqueezeExcite {
  SqueezeExcite(const Scope& scope, std::int64_t channels, std::int64_t hidden);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops() const { return fc1.flops(1, 1) + fc2.flops(1, 1); }

  Conv2d fc1;
  Conv2d fc2;
};

}  // namespace vitrail::nn
