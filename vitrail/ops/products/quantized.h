/// \file
/// Linear maps whose weights are held in int8.
#pragma once

#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// A quantized weight [out, in]: int8 values times a scale for each output. In a checkpoint the tensors are called
/// `weight`, `weight_scale` and `input_scale`.
struct QuantizedWeight {
  Tensor values;  ///< [out, in] i8
  Tensor scale;   ///< [out] f32

  /// The fixed scale of the inputs, [1] f32; if it is undefined, each row of x has its own, max|x| / 127.
  Tensor input_scale;
};

/// Quantizes a weight [out, in] f32: weight ≈ values · scale with scale = max|weight| / 127 of each row (symmetric,
/// rounded to nearest).
QuantizedWeight quantize(const Tensor& weight);

/// y = act(x̂ Ŵᵀ + b) + residual, where x̂ and Ŵ are x and the weight rounded to int8: the product runs in int8 with
/// exact sums, and what follows in f32, rounded to x's dtype after each step. Shapes and dtypes are those of linear()
/// with an f32 weight. For inference: Error if a gradient is wanted.
Tensor linear(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias = {},
              Activation activation = Activation::identity, const Tensor& residual = {});

}  // namespace vitrail::ops
