/// \file
/// Linear maps, fused with what follows them.
#pragma once

#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// y = act(x Wᵀ + b) + residual
///
/// ```text
/// x [..., in], f32 or bf16, any strides that reshape() to rows; weight [out, in] f32 (PyTorch's layout), or bf16 if x
/// is; bias [out] f32 or undefined; residual [..., out] of x's dtype or undefined. y [..., out] in x's dtype.
/// ```
///
/// The product runs in x's dtype with f32 accumulation; the weight is packed for it at the first use and after every
/// Tensor::touch(), unless x has few rows and the weight is of its dtype (kernels/few_rows.h). Gradients: dx in x's
/// dtype, dW and db in f32.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              Activation activation = Activation::identity, const Tensor& residual = {});

}  // namespace vitrail::ops
