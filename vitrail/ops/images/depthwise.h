/// \file
/// Depthwise convolution of tokens.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Sizes in frames, rows and columns; an image has one frame.
using Size3 = std::array<std::int64_t, 3>;

struct DepthwiseOptions {
  Size3 grid = {1, 1, 1};  ///< the grid of the tokens, frame by frame and row by row
  Size3 stride = {1, 1, 1};
  Size3 padding = {0, 0, 0};
  std::int64_t prefix = 0;  ///< tokens in front of the grid (a class token), which are copied unchanged
};

/// The size of the grid of the result: (size + 2 padding - kernel) / stride + 1 along each axis. Error if the kernel
/// does not fit.
Size3 pooled_grid(const Size3& grid, const Size3& kernel, const Size3& stride, const Size3& padding);

/// Depthwise convolution of tokens x [B, prefix + T H W, C], f32 or bf16. The channels are C / D groups (the heads of
/// attention) that share one weight [D, 1, kT, kH, kW], or [D, 1, kH, kW] for one frame, f32: y[.., h D + d] =
/// weight[d] ⋆ x[.., h D + d]. For each group this is torch.nn.functional.conv3d with groups = D and without bias.
/// Returns [B, prefix + T' H' W', C], contiguous. x may be a part of a wider projection: it is read through its
/// strides.
Tensor depthwise_conv(const Tensor& x, const Tensor& weight, const DepthwiseOptions& options);

}  // namespace vitrail::ops
