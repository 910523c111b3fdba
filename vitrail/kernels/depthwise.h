// Depthwise convolution of tokens that lie on a grid, channels last.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// Frames, rows and columns; a picture has one frame.
struct DepthwiseGeometry {
  std::array<std::int64_t, 3> input, output;
  std::array<std::int64_t, 3> kernel, stride, padding;
  std::int64_t prefix = 0;  // tokens in front of the grid, which pass unchanged
};

// y[b, o, c] = Σ_k weight[k, c] x[b, o · stride + k - padding, c] for x [B, prefix + N, C] and y [B, prefix + N', C] of
// one dtype (f32 or bf16), any strides with dense channels. weight [kernel positions, C] f32, contiguous: a row for
// each place of the kernel, frame by frame and row by row.
void depthwise(const Tensor& x, const Tensor& weight, const DepthwiseGeometry& geometry, const Tensor& y);
void depthwise_input_gradient(const Tensor& dy, const Tensor& weight, const DepthwiseGeometry& geometry,
                              const Tensor& dx);
// dweight [kernel positions, C] f32, contiguous. The same for a fixed number of threads.
void depthwise_weight_gradient(const Tensor& x, const Tensor& dy, const DepthwiseGeometry& geometry,
                               const Tensor& dweight);

}  // namespace vitrail::kernels
