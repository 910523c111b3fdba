/// \file
/// Layer normalization and RMS normalization, forward and backward.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The shape and kind of a normalization: rows × width elements of `dtype` (f32 or bf16), dense, each row normalized on
/// its own. Sums and statistics run in f32.
struct RowNorm {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  bool centered = true;  ///< layer norm, which subtracts the mean; false: RMS norm
};

/// y = (x - mean) rstd · weight + bias, with rstd = 1 / √(mean((x - mean)²) + eps); weight and bias [width] may each be
/// null. mean (0 unless centered) and rstd [rows] are written for the backward pass unless they are null.
void norm_forward(const RowNorm& norm, const void* x, const float* weight, const float* bias, float eps, void* y,
                  float* mean, float* rstd);

/// Computes from dy, in one pass over x and dy: dx, to which `more` is added unless that is null (it may be dx); and,
/// summed over the rows, dweight and dbias [width]. Each of the three is not computed if it is null. Deterministic for
/// a given number of threads.
void norm_backward(const RowNorm& norm, const void* x, const float* weight, const float* mean, const float* rstd,
                   const void* dy, const void* more, void* dx, float* dweight, float* dbias);

}  // namespace vitrail::kernels
