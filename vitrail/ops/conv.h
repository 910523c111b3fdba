// Convolution and pooling over pictures.
#pragma once

#include <array>

#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct ConvOptions {
  std::array<std::int64_t, 2> stride = {1, 1};   // rows, columns
  std::array<std::int64_t, 2> padding = {0, 0};  // zeros on either side
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::int64_t groups = 1;
};

// Cross-correlation as torch.nn.functional.conv2d: x [B, C, H, W] (f32 or bf16), weight [O, C / groups, kH, kW] f32,
// bias [O] f32 or undefined → [B, O, H', W'] with H' = (H + 2 p - d (kH - 1) - 1) / s + 1. The result's memory is
// channels-last, [B, H', W', O], as are those of pooling and batch norm: kernels for pictures work best so, and tokens
// [B, H' W', O] are then a view of it.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {});

// act(conv2d(x, …) + residual) with as much of it in one pass as goes; `residual` [B, O, H', W'] may be undefined, and
// where it is moved in and nobody else holds it, the result may take its memory. For inference: Error where a gradient
// would be wanted. ReLU may make 0 of NaN here (oneDNN's does).
Tensor conv2d_activated(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                        Activation activation, Tensor residual = {});

struct PoolOptions {
  std::array<std::int64_t, 2> kernel = {2, 2};
  std::array<std::int64_t, 2> stride = {2, 2};
  std::array<std::int64_t, 2> padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling divides by the kernel's area even at the border
};
// The largest (the first of equals takes the gradient) and the mean of each window of x [B, C, H, W], f32 or bf16:
// torch's max_pool2d and avg_pool2d.
Tensor max_pool2d(const Tensor& x, const PoolOptions& options);
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options);
// The mean over size[0] x size[1] windows that cover the picture evenly.
Tensor adaptive_avg_pool2d(const Tensor& x, std::array<std::int64_t, 2> size);

}  // namespace vitrail::ops
