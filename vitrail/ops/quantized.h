// Linear maps whose weights are held in int8.
#pragma once

#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// A weight [out, in] as int8 values times a scale for each output. In a checkpoint they are `weight`,
// `weight_scale` and `input_scale`.
struct QuantizedWeight {
  Tensor values;       // [out, in] i8
  Tensor scale;        // [out] f32
  Tensor input_scale;  // [1] f32, the fixed scale of the inputs; undefined: each row of x has its own, max|x| / 127
};

// weight ≈ values · scale with scale = max|weight| / 127 of each row (symmetric, round to nearest).
QuantizedWeight quantize(const Tensor& weight);

// y = act(x̂ Ŵᵀ + b) + residual, where x̂ and Ŵ are x and the weight rounded to int8: the product runs in int8 with
// exact sums, what follows in f32, rounded to x's dtype after each step. Shapes and dtypes as linear()'s. For
// inference: Error where a gradient would be wanted.
Tensor linear(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias = {},
              Activation activation = Activation::identity, const Tensor& residual = {});

}  // namespace vitrail::ops
