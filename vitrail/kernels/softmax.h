/// \file
/// Softmax and its logarithm over the rows of a matrix.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The shape and kind of a softmax over rows: rows × width elements of `dtype` (f32 or bf16), dense. Sums run in f32.
struct RowSoftmax {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  bool logarithm = false;  ///< whether the result is the logarithm of the softmax
};

/// y = e^x / Σ e^x over each row, or x - log Σ e^x if `logarithm`.
void softmax_forward(const RowSoftmax& softmax, const void* x, void* y);
/// dx = y (dy - Σ y dy) over each row, or dy - e^y Σ dy if `logarithm`.
void softmax_backward(const RowSoftmax& softmax, const void* y, const void* dy, void* dx);

}  // namespace vitrail::kernels
