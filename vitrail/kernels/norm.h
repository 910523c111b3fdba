// Layer normalization and its kin, forward and backward.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// rows × width elements of `dtype` (f32 or bf16), row after row, each row normalized by itself. Sums and statistics run
// in f32.
struct RowNorm {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  bool centered = true;  // layer norm: minus the mean first; false: RMS norm
};

// y = (x - mean) rstd · weight + bias, with rstd = 1 / √(mean((x - mean)²) + eps); weight and bias [width] may be null
// each. mean (only if centered) and rstd [rows] are written for the backward pass unless null.
void norm_forward(const RowNorm& norm, const void* x, const float* weight, const float* bias, float eps, void* y,
                  float* mean, float* rstd);

// From dy, in one pass over x and dy: dx, plus `more` unless that is null (it may be dx); and, added up over the rows,
// dweight and dbias [width]. Each of the three is left out if null. Deterministic for a given number of threads.
void norm_backward(const RowNorm& norm, const void* x, const float* weight, const float* mean, const float* rstd,
                   const void* dy, const void* more, void* dx, float* dweight, float* dbias);

}  // namespace vitrail::kernels
