// Normalizations.
#pragma once

#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// (x - mean) / √(var + eps) · weight + bias over the last dimension D of x [..., D] (Ba et al. 2016). weight and bias
// [D] f32, or both undefined. Statistics in f32 whatever x's dtype.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps);
// x / √(mean(x²) + eps) · weight over the last dimension (Zhang & Sennrich 2019); weight may be undefined.
Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps);

// Batch normalization of x [B, C, H, W] or [B, C] over all but C (Ioffe & Szegedy 2015). In training the batch's own
// statistics are used and running = (1 - momentum) running + momentum batch (the variance unbiased, as PyTorch's),
// written in place; otherwise the running ones are used. weight and bias [C] f32 or undefined. A residual of x's shape
// and dtype is added, and the ReLU taken of the sum, in the same passes over memory; error for any other activation.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, bool training, float momentum, float eps,
                  Activation activation = Activation::identity, const Tensor& residual = {});

// (x - mean) / √(var + eps) · weight + bias with the statistics of a sample's pixels in each of `groups` runs of
// neighbouring channels of x [B, C, H, W] (Wu & He 2018; torch.nn.functional.group_norm). weight and bias [C] f32 or
// undefined. The result is channels-last.
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, float eps);

}  // namespace vitrail::ops
