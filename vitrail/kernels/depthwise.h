/// \file
/// Depthwise convolution of tokens on a grid, with channels last.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// The geometry of a depthwise convolution. All sizes are frames, rows and columns; an image has one frame.
struct DepthwiseGeometry {
  std::array<std::int64_t, 3> input, output;
  std::array<std::int64_t, 3> kernel, stride, padding;
  std::int64_t prefix = 0;  ///< tokens in front of the grid, which are copied unchanged
};

/// y[b, o, c] = Σ_k weight[k, c] x[b, o · stride + k - padding, c] for x [B, prefix + N, C] and y [B, prefix + N', C]
/// of one dtype (f32 or bf16), any strides with dense channels. weight [kernel positions, C] f32, contiguous; kernel
/// positions are ordered by frames, then rows, then columns.
void depthwise(const Tensor& x, const Tensor& weight, const DepthwiseGeometry& geometry, const Tensor& y);
/// The gradient dx [B, prefix + N, C] of the input of depthwise(), from dy [B, prefix + N', C].
void depthwise_input_gradient(const Tensor& dy, const Tensor& weight, const DepthwiseGeometry& geometry,
                              const Tensor& dx);
/// The gradient of the weight of depthwise(): dweight [kernel positions, C] f32, contiguous. Deterministic for a given
/// number of threads.
void depthwise_weight_gradient(const Tensor& x, const Tensor& dy, const DepthwiseGeometry& geometry,
                               const Tensor& dweight);

}  // namespace vitrail::kernels
