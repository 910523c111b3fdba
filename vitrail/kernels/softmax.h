// Softmax and its logarithm over the rows of a matrix.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// rows × width elements of `dtype` (f32 or bf16), row after row; sums run in f32.
struct RowSoftmax {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  bool logarithm = false;  // log_softmax
};

// y = e^x / Σ e^x, or x - log Σ e^x.
void softmax_forward(const RowSoftmax& softmax, const void* x, void* y);
// dx = y (dy - Σ y dy), or dy - e^y Σ dy.
void softmax_backward(const RowSoftmax& softmax, const void* y, const void* dy, void* dx);

}  // namespace vitrail::kernels
