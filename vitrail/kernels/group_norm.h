/// \file
/// Group normalization of images, forward and backward.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The shape of the input: samples × pixels × channels elements of `dtype` (f32 or bf16), channels-last. The channels
/// of a group, which are adjacent, are normalized together over all pixels of a sample. Sums and statistics run in f32
/// over short runs of pixels, and in f64 over the runs.
struct GroupNorm {
  std::int64_t samples = 0;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  std::int64_t groups = 1;
  DType dtype = DType::f32;
};

/// y = (x - mean) rstd · weight + bias with rstd = 1 / √(variance + eps), the variance biased; weight and bias
/// [channels] may be null. mean and rstd [samples, groups] are written.
void group_norm_forward(const GroupNorm& norm, const void* x, const float* weight, const float* bias, float eps,
                        void* y, float* mean, float* rstd);
/// Computes dx, dweight [channels] and dbias [channels] from dy; those that are null are not computed.
void group_norm_backward(const GroupNorm& norm, const void* x, const float* weight, const float* mean,
                         const float* rstd, const void* dy, void* dx, float* dweight, float* dbias);

}  // namespace vitrail::kernels
