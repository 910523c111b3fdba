/// \file
/// Multiplication by a weight, and addition of a bias, for each feature.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// y = x ⊙ weight + bias + residual over the last dimension of x [..., D], f32 or bf16, in one pass over memory: the
/// affine transformation in place of a norm (ResMLP: Touvron et al. 2021, eq. 1), and LayerScale with its residual
/// connection (CaiT: Touvron et al. 2021). weight and bias [D] f32, residual of x's shape and dtype; bias and residual
/// may be undefined.
Tensor scale(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Tensor& residual = {});

}  // namespace vitrail::ops
