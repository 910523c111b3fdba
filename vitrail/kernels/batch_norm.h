/// \file
/// Batch normalization of images, fused with the residual and the ReLU that may follow it.
#pragma once

#include <functional>
#include <span>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// Adds up numbers, in place, over all processes that have a part of one batch: all get the same bits, and each must
/// call it as often as the others.
using BatchSum = std::function<void(std::span<double> numbers)>;

// Images (x, y, the residual and their gradients) are [B, C, H, W], f32 or bf16, in channels-last memory, and not
// empty.

/// Writes the mean and the biased variance of x over all dimensions but C, both [C] f32.
void batch_statistics(const Tensor& x, const Tensor& mean, const Tensor& variance);

/// The parameters of y = (x - mean) rstd · weight + bias + residual, which a ReLU follows if `relu`. All are [C] f32,
/// contiguous.
struct BatchNorm {
  Tensor mean;
  Tensor rstd;  ///< 1 / √(variance + eps)
  Tensor weight;
  Tensor bias;
  bool relu = false;
};
/// Computes y. The residual may be undefined; y may share the memory of x or of the residual.
void batch_norm(const BatchNorm& norm, const Tensor& x, const Tensor& residual, const Tensor& y);

/// Computes, from dy of x's shape and dtype, those of dx, dweight and dbias ([C] f32) that are defined. `statistics`:
/// whether mean and rstd were computed from x, so that the gradient flows through them too; with `batch`, from x and
/// from what other processes have of the batch, over which dx is then summed, while dweight and dbias are of x alone.
/// If a residual and a ReLU follow the norm, y and `dsum` are needed: dsum receives the gradient of the ReLU's input,
/// which is that of the residual too. Both are undefined otherwise. dsum and dx may share the memory of dy; if both do,
/// dx overwrites dsum.
void batch_norm_gradient(const BatchNorm& norm, const Tensor& x, const Tensor& y, const Tensor& dy, bool statistics,
                         const Tensor& dsum, const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         const BatchSum* batch = nullptr);

}  // namespace vitrail::kernels
