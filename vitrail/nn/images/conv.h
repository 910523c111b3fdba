/// \file
/// Convolutions and normalizations of feature maps [B, C, H, W], with their parameters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/ops/images/conv.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// torch.nn.Conv2d: x [B, in, H, W] → y [B, out, H', W'] with `y[o] = b[o] + Σ_i W[o, i] ⋆ x[i]`; ops::conv2d() says
/// what H' is. Parameters `weight` [out, in / groups, kH, kW] and, with `bias`, `bias` [out], drawn from
/// uniform(±1/√fan_in).
struct Conv2d {
  Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::array<std::int64_t, 2> kernel,
         const ops::ConvOptions& options = {}, bool bias = true);
  Tensor operator()(const Tensor& x) const;

  /// fvcore's count for one sample whose output has `rows` × `columns` pixels.
  std::int64_t flops(std::int64_t rows, std::int64_t columns) const { return rows * columns * weight.numel(); }
  /// The rows and columns of the output for an input of `size`.
  Size2 output_size(const Size2& size) const;

  ops::ConvOptions options;
  Tensor weight;
  Tensor bias;  ///< undefined without bias
};

/// torch.nn.BatchNorm2d: (x - mean) / √(var + eps) · weight + bias for each channel of x [B, C, H, W]. In training the
/// statistics are those of the batch, and the running statistics follow them; otherwise, and if the weight is frozen
/// (requires no gradient), the running statistics are used. Parameters `weight` and `bias` [C]; buffers `running_mean`,
/// `running_var` [C] and the count `num_batches_tracked` [].
struct BatchNorm2d {
  BatchNorm2d(const Scope& scope, std::int64_t channels, float eps = 1e-5F, float momentum = 0.1F);
  /// act(norm(x) + residual). `residual`, which has x's shape, may be undefined.
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity,
                    const Tensor& residual = {}) const;
  /// fvcore's count for one sample of `size`: 2 flops per element.
  std::int64_t flops(const Size2& size) const { return 2 * size[0] * size[1] * weight.numel(); }

  float eps;
  float momentum;
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;
};

/// How a convolution treats its weight and the border. The styles are those of timm's conv_layer: create_conv2d,
/// StdConv2d and StdConv2dSame.
struct ConvStyle {
  /// The eps of weight standardization (Qiao et al. 2019), if it is on: the weight of each output minus its mean,
  /// divided by √(its variance + eps).
  std::optional<float> standardize = std::nullopt;
  /// TensorFlow's padding: as much as gives ⌈size / stride⌉ outputs, with the odd pixel at the right and at the bottom.
  /// If false, half of the kernel is padded on either side.
  bool same_padding = false;
};

/// A Conv2d without bias and with a square kernel, in the given style. Parameter `weight` [out, in, kernel, kernel].
struct StyledConv2d {
  StyledConv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const ConvStyle& style);
  Tensor operator()(const Tensor& x) const;
  /// fvcore's count for an input of `size`, which is set to the output's size; standardization counts 4 flops per
  /// weight.
  std::int64_t flops(Size2& size) const;
  Size2 output_size(const Size2& size) const;

  ConvStyle style;
  Conv2d conv;
};

/// torch.nn.GroupNorm: normalizes each sample of x [B, C, H, W] over the pixels and channels of each of `groups` runs
/// of neighbouring channels (ops::group_norm()). Parameters `weight` and `bias` [C]. Throws Error unless `groups`
/// divides C.
struct GroupNorm {
  GroupNorm(const Scope& scope, std::int64_t channels, std::int64_t groups = 32, float eps = 1e-5F);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops(const Size2& size) const { return 5 * size[0] * size[1] * weight.numel(); }

  std::int64_t groups;
  float eps;
  Tensor weight;
  Tensor bias;
};

}  // namespace vitrail::nn
