// Depthwise convolution of tokens.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Frames, rows and columns; a picture has one frame.
using Size3 = std::array<std::int64_t, 3>;

struct DepthwiseOptions {
  Size3 grid = {1, 1, 1};  // on which the tokens lie, frame by frame and row by row
  Size3 stride = {1, 1, 1};
  Size3 padding = {0, 0, 0};
  std::int64_t prefix = 0;  // tokens in front of the grid (a class token), which pass unchanged
};

// The grid that comes out: (size + 2 padding - kernel) / stride + 1 along each axis. Error if a kernel does not fit.
Size3 pooled_grid(const Size3& grid, const Size3& kernel, const Size3& stride, const Size3& padding);

// torch.nn.functional.conv3d with groups = D and without bias on tokens x [B, prefix + T H W, C], f32 or bf16, whose
// channels are C / D groups (the heads of attention) that share one weight [D, 1, kT, kH, kW], or [D, 1, kH, kW] for
// one frame, f32: y[.., h D + d] = weight[d] ⋆ x[.., h D + d]. Returns [B, prefix + T' H' W', C], contiguous. x may be
// a part of a wider projection: it is read where it lies.
Tensor depthwise_conv(const Tensor& x, const Tensor& weight, const DepthwiseOptions& options);

}  // namespace vitrail::ops
