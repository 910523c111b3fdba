// Batch normalization of pictures, and what follows it in the same passes over memory.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// Pictures below are [B, C, H, W], f32 or bf16, channels-last, not empty.

// mean and variance [C] f32 of x over all but C, the variance biased.
void batch_statistics(const Tensor& x, const Tensor& mean, const Tensor& variance);

// y = (x - mean) rstd · weight + bias + residual, and the ReLU of that if `relu`. All [C] f32, contiguous.
struct BatchNorm {
  Tensor mean;
  Tensor rstd;  // 1 / √(variance + eps)
  Tensor weight;
  Tensor bias;
  bool relu = false;
};
// The residual may be undefined; y may lie where x or the residual does.
void batch_norm(const BatchNorm& norm, const Tensor& x, const Tensor& residual, const Tensor& y);

// From dy, of x's dtype: dx, and dweight and dbias [C] f32, each unless it is undefined. `statistics`: mean and rstd
// are those of x, and depend on it. A ReLU with a residual behind the norm needs y, and `dsum`, which takes the
// gradient of the ReLU's input: the residual's too. Both are undefined otherwise. dsum and dx may lie where dy does; dx
// then takes the place of dsum.
void batch_norm_gradient(const BatchNorm& norm, const Tensor& x, const Tensor& y, const Tensor& dy, bool statistics,
                         const Tensor& dsum, const Tensor& dx, const Tensor& dweight, const Tensor& dbias);

}  // namespace vitrail::kernels
