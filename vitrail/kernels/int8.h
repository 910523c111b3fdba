/// \file
/// Products in int8 with symmetric quantization (Jacob et al. 2018): a number is its int8 value times the scale of its
/// row.
#pragma once

#include "vitrail/kernels/gemm.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// Quantizes x [M, K], f32 or bf16, contiguous, to q [M, K] i8 with scales [M] f32, one for each row: q =
/// round(x / scale), clamped to ±127. The scale is max|x| / 127 of the row (1 for a row of zeros), or `fixed` [1] for
/// all rows if that is defined. A row with NaN or Inf gets the scale NaN, and zeros in q.
void quantize_rows(const Tensor& x, const Tensor& fixed, const Tensor& q, const Tensor& scales);

/// sums = a · weightᵀ, exact: a [M, K] i8, weight [N, K] i8 (packed at the first use, unless it fits_int8_few_rows() as
/// it lies, or the CPU lacks instructions for int8), sums [M, N] i32.
void int8_sums(const Tensor& a, const Tensor& weight, const Tensor& sums);

/// c = last(activation((a · weightᵀ) a_scales weight_scales + bias) + residual). a [M, K] i8 with a_scales [M] f32,
/// weight [N, K] i8 with weight_scales [N] f32; c [M, N] f32 or bf16, rounded to its dtype before each activation and
/// again after it.
void matmul_int8(const Tensor& a, const Tensor& a_scales, const Tensor& weight, const Tensor& weight_scales,
                 const Epilogue& epilogue, const Tensor& c);

}  // namespace vitrail::kernels
