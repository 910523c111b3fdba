// Convolutions of pictures (oneDNN).
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

struct ConvGeometry {
  std::array<std::int64_t, 2> stride = {1, 1};
  std::array<std::int64_t, 2> padding = {0, 0};
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::int64_t groups = 1;
};

// x [B, C, H, W], y [B, O, H', W'] and their gradients: f32 or bf16, channels-last (vitrail/kernels/layout.h), not
// empty. weight [O, C / groups, kH, kW] and bias [O] (may be undefined): f32 parameters, contiguous; the weight is
// packed in x's dtype until Tensor::touch().

// What happens to the result before it is written, in this order.
struct ConvEpilogue {
  bool add = false;  // to what y holds
  bool relu = false;
};
void convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry,
                 const Tensor& y, const ConvEpilogue& epilogue = {});
void convolution_input_gradient(const Tensor& dy, const Tensor& weight, const ConvGeometry& geometry, const Tensor& dx);
// dweight f32, contiguous; dbias f32 or undefined.
void convolution_weight_gradient(const Tensor& x, const Tensor& dy, const ConvGeometry& geometry, const Tensor& dweight,
                                 const Tensor& dbias);

}  // namespace vitrail::kernels
