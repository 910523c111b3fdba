/// \file
/// Convolution and pooling of videos.
#pragma once

#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct Conv3dOptions {
  std::array<std::int64_t, 3> stride = {1, 1, 1};   ///< frames, rows, columns
  std::array<std::int64_t, 3> padding = {0, 0, 0};  ///< zeros on either side
  std::int64_t groups = 1;
};

/// Cross-correlation as torch.nn.functional.conv3d: x `[B, C, T, H, W]` (f32 or bf16), weight [O, C / groups, kT, kH,
/// kW] f32, bias [O] f32 or undefined → [B, O, T', H', W'] with T' = (T + 2 p - kT) / s + 1. The result is in
/// channels-last memory, [B, T', H', W', O], so that tokens are a view of it. It is computed as a convolution of
/// images, whose channels are the frames under the kernel.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv3dOptions& options = {});

struct Pool3dOptions {
  std::array<std::int64_t, 3> kernel = {2, 2, 2};
  std::array<std::int64_t, 3> stride = {2, 2, 2};
  std::array<std::int64_t, 3> padding = {0, 0, 0};
};
/// Max pooling of x [B, C, T, H, W], f32 or bf16, as torch.nn.functional.max_pool3d. The first of equal elements
/// receives the gradient. The result is in channels-last memory like that of conv3d().
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options);
/// Average pooling of x [B, C, T, H, W], f32 or bf16, as torch.nn.functional.avg_pool3d. The result is in channels-last
/// memory like that of conv3d().
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options);

}  // namespace vitrail::ops
