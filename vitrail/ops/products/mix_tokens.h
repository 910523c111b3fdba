/// \file
/// Linear maps along the tokens.
#pragma once

#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// y = act(W x + b 1ᵀ) + residual for each sample: it does to tokens what linear() does to features (MLP-Mixer:
/// Tolstikhin et al. 2021, eq. 1). It equals linear() between two transpositions, but needs none.
///
/// ```text
/// x [..., N, D], f32 or bf16; weight [M, N] f32; bias [M] f32 or undefined; residual [..., M, D] of x's dtype or
/// undefined. y [..., M, D] in x's dtype.
/// ```
///
/// Gradients: dx in x's dtype, dW and db in f32.
Tensor mix_tokens(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                  Activation activation = Activation::identity, const Tensor& residual = {});

}  // namespace vitrail::ops
