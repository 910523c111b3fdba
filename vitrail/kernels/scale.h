/// \file
/// Multiplication by a weight, and addition of a bias, for each column.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// y = x ⊙ weight + bias + residual for rows × width elements of `dtype` (f32 or bf16); weight and bias [width] f32.
/// bias and residual may be null. y may be the memory of x or of the residual.
void scale_forward(std::int64_t rows, std::int64_t width, DType dtype, const void* x, const float* weight,
                   const float* bias, const void* residual, void* y);

/// Computes from dy, in one pass: dx = dy ⊙ weight and, summed over the rows, dweight = Σ dy ⊙ x and dbias = Σ dy. Each
/// of the three is not computed if it is null; x may be null if dweight is. Deterministic for a given number of
/// threads.
void scale_backward(std::int64_t rows, std::int64_t width, DType dtype, const void* x, const float* weight,
                    const void* dy, void* dx, float* dweight, float* dbias);

}  // namespace vitrail::kernels
