/// \file
/// Convolution and pooling of images.
#pragma once

#include <array>

#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct ConvOptions {
  std::array<std::int64_t, 2> stride = {1, 1};   ///< rows, columns
  std::array<std::int64_t, 2> padding = {0, 0};  ///< zeros on either side
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::int64_t groups = 1;
};

/// Cross-correlation as torch.nn.functional.conv2d: x `[B, C, H, W]` (f32 or bf16), weight [O, C / groups, kH, kW] f32,
/// bias [O] f32 or undefined → [B, O, H', W'] with H' = (H + 2 p - d (kH - 1) - 1) / s + 1. The result is in
/// channels-last memory, [B, H', W', O], as are those of pooling and batch norm: kernels for images are fastest on it,
/// and tokens [B, H' W', O] are a view of it.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {});

/// act(conv2d(x, …) + residual), fused as far as possible. `residual` [B, O, H', W'] may be undefined; if it is moved
/// in and not shared, the result may take its memory. For inference: Error if a gradient is wanted. ReLU may turn NaN
/// into 0 here (oneDNN's does).
Tensor conv2d_activated(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                        Activation activation, Tensor residual = {});

struct PoolOptions {
  std::array<std::int64_t, 2> kernel = {2, 2};
  std::array<std::int64_t, 2> stride = {2, 2};
  std::array<std::int64_t, 2> padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< average pooling divides by the kernel's area even at the border
};
/// Max pooling of x [B, C, H, W], f32 or bf16, as torch.nn.functional.max_pool2d. The first of equal elements receives
/// the gradient.
Tensor max_pool2d(const Tensor& x, const PoolOptions& options);
/// Average pooling of x [B, C, H, W], f32 or bf16, as torch.nn.functional.avg_pool2d.
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options);
/// Average pooling over size[0] x size[1] windows that cover the image evenly, as
/// torch.nn.functional.adaptive_avg_pool2d.
Tensor adaptive_avg_pool2d(const Tensor& x, std::array<std::int64_t, 2> size);

}  // namespace vitrail::ops
