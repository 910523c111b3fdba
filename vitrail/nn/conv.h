// Convolution and batch normalization over pictures, with their parameters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/conv.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// x [B, in, H, W] → [B, out, H', W'], y[o] = b[o] + Σ_i W[o, i] ⋆ x[i] (torch.nn.Conv2d; ops::conv2d says H').
// Parameters `weight` [out, in / groups, kH, kW] and, with `bias`, `bias` [out], drawn from uniform(±1/√fan_in).
struct Conv2d {
  Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::array<std::int64_t, 2> kernel,
         const ops::ConvOptions& options = {}, bool bias = true);
  Tensor operator()(const Tensor& x) const;

  // fvcore's count for one picture with an output of `rows` × `columns`.
  std::int64_t flops(std::int64_t rows, std::int64_t columns) const { return rows * columns * weight.numel(); }
  // Rows and columns that come out for pictures of `size`.
  Size2 output_size(const Size2& size) const;

  ops::ConvOptions options;
  Tensor weight;
  Tensor bias;  // undefined without
};

// (x - mean) / √(var + eps) · weight + bias for each channel of x [B, C, H, W] (torch.nn.BatchNorm2d). In training the
// statistics are the batch's, and the running ones follow them; otherwise, and where the weight is frozen (takes no
// gradient), the running ones are used. Parameters
// `weight` and `bias` [C]; buffers `running_mean`, `running_var` [C] and the count `num_batches_tracked` [].
struct BatchNorm2d {
  BatchNorm2d(const Scope& scope, std::int64_t channels, float eps = 1e-5F, float momentum = 0.1F);
  // act(norm(x) + residual); the residual of x's shape may be undefined.
  Tensor operator()(const Tensor& x, const Pass& pass, ops::Activation activation = ops::Activation::identity,
                    const Tensor& residual = {}) const;
  // fvcore's count for a picture of `size`: 2 an element.
  std::int64_t flops(const Size2& size) const { return 2 * size[0] * size[1] * weight.numel(); }

  float eps;
  float momentum;
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;
};

// How a convolution treats its weight and the border, by timm's conv_layer: create_conv2d, StdConv2d, StdConv2dSame.
struct ConvStyle {
  // Weight standardization (Qiao et al. 2019): the weight of each output minus its mean, over √(its variance + eps).
  std::optional<float> standardize = std::nullopt;
  // TensorFlow's padding: as much as gives ⌈size / stride⌉ outputs, the odd pixel at the right and below. Otherwise
  // half of the kernel on either side.
  bool same_padding = false;
};

// Conv2d without bias in such a style. Parameter `weight` [out, in, kernel, kernel].
struct StyledConv2d {
  StyledConv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
               const ConvStyle& style);
  Tensor operator()(const Tensor& x) const;
  // fvcore's count for pictures of `size`, which becomes that of the output; standardization counts 4 a weight.
  std::int64_t flops(Size2& size) const;
  Size2 output_size(const Size2& size) const;

  ConvStyle style;
  Conv2d conv;
};

// x [B, C, H, W] normalized over the pixels of a sample in each of `groups` runs of neighbouring channels
// (torch.nn.GroupNorm; ops::group_norm). Parameters `weight` and `bias` [C]. Error unless the groups divide C.
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
