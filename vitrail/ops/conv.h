// Convolution and pooling over pictures.
#pragma once

#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct ConvOptions {
  std::array<std::int64_t, 2> stride = {1, 1};   // rows, columns
  std::array<std::int64_t, 2> padding = {0, 0};  // zeros on either side
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::int64_t groups = 1;
};

// Cross-correlation as torch.nn.functional.conv2d: x [B, C, H, W] (f32 or bf16), weight [O, C / groups, kH, kW] f32,
// bias [O] f32 or undefined → [B, O, H', W'] with H' = (H + 2 p - d (kH - 1) - 1) / s + 1.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {});

struct PoolOptions {
  std::array<std::int64_t, 2> kernel = {2, 2};
  std::array<std::int64_t, 2> stride = {2, 2};
  std::array<std::int64_t, 2> padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling divides by the kernel's area even at the border
};
Tensor max_pool2d(const Tensor& x, const PoolOptions& options);  // x [B, C, H, W]
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& x, std::array<std::int64_t, 2> size);

}  // namespace vitrail::ops
