/// \file
/// Convolutions of images (oneDNN).
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

// In the functions below, x [B, C, H, W], y [B, O, H', W'] and their gradients are f32 or bf16, in channels-last memory
// (vitrail/kernels/layout.h), and not empty. weight [O, C / groups, kH, kW] and bias [O] (may be undefined) are f32
// parameters, contiguous; the weight is packed in x's dtype at the first use and after every Tensor::touch().

/// What is done to the result of a convolution before it is stored, in this order.
struct ConvEpilogue {
  bool add = false;  ///< whether it is added to the contents of y
  bool relu = false;
};
/// y = x ⋆ weight + bias (a cross-correlation), after which the epilogue is applied.
void convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry,
                 const Tensor& y, const ConvEpilogue& epilogue = {});
/// The gradient dx of the input of convolution().
void convolution_input_gradient(const Tensor& dy, const Tensor& weight, const ConvGeometry& geometry, const Tensor& dx);
/// The gradients of the parameters of convolution(): dweight f32, contiguous; dbias f32 or undefined.
void convolution_weight_gradient(const Tensor& x, const Tensor& dy, const ConvGeometry& geometry, const Tensor& dweight,
                                 const Tensor& dbias);

/// How many of these this program has computed by reference code, which oneDNN has for all layouts and which takes a
/// hundred times as long: of images of floating-point numbers on a CPU with AVX2, none should be.
std::uint64_t slow_convolutions();

}  // namespace vitrail::kernels
