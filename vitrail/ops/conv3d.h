// Convolution and pooling over videos.
#pragma once

#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct Conv3dOptions {
  std::array<std::int64_t, 3> stride = {1, 1, 1};   // frames, rows, columns
  std::array<std::int64_t, 3> padding = {0, 0, 0};  // zeros on either side
  std::int64_t groups = 1;
};

// Cross-correlation as torch.nn.functional.conv3d: x [B, C, T, H, W] (f32 or bf16), weight [O, C / groups, kT, kH, kW]
// f32, bias [O] f32 or undefined → [B, O, T', H', W'] with T' = (T + 2 p - kT) / s + 1. The result's memory is
// channels-last, [B, T', H', W', O], so that tokens are a view of it.
// The frames under the kernel become channels of pictures, and the convolution one of pictures.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv3dOptions& options = {});

struct Pool3dOptions {
  std::array<std::int64_t, 3> kernel = {2, 2, 2};
  std::array<std::int64_t, 3> stride = {2, 2, 2};
  std::array<std::int64_t, 3> padding = {0, 0, 0};
};
// The largest (the first of equals takes the gradient) and the mean of each window of x [B, C, T, H, W], f32 or bf16:
// torch's max_pool3d and avg_pool3d. Channels-last like conv3d.
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options);
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options);

}  // namespace vitrail::ops
