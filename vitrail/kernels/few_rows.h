/// \file
/// Products of few rows with a large weight, at the pace at which memory gives the weight.
#pragma once

#include <cstdint>

#include "vitrail/kernels/gemm.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// The most rows of such a product: with more of them arithmetic takes longer than reading, and oneDNN is faster.
constexpr std::int64_t most_few_rows = 16;

/// Whether matmul_few_rows() takes c = a · weight + …, a [M, K] and weight [K, N]: M is at most most_few_rows, the
/// weight is f32 or bf16, and a has its dtype or is f32, the weight is the transposed view of a dense [N, K], all else
/// is dense, and the weight is so large that it is not worth packing.
bool fits_few_rows(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c);

/// matmul_packed() for operands that fit_few_rows(). Nothing is packed: each element of the weight is read once, where
/// it lies. What comes of a row depends neither on the other rows nor on the number of threads. The result is rounded
/// to c's dtype once, before the last activation.
void matmul_few_rows(const Tensor& a, const Tensor& weight, const Epilogue& epilogue, const Tensor& c);

/// Whether int8_few_rows() takes a [M, K] and weight [N, K]: as fits_few_rows(), and the CPU has AVX512-VNNI.
bool fits_int8_few_rows(const Tensor& a, const Tensor& weight);

/// int8_sums() for operands that fit: sums [M, N] i32 = a [M, K] i8 · weightᵀ, weight [N, K] i8.
void int8_few_rows(const Tensor& a, const Tensor& weight, const Tensor& sums);

}  // namespace vitrail::kernels
