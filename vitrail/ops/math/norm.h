/// \file
/// Layer, RMS, batch and group normalization.
#pragma once

#include "vitrail/kernels/batch_norm.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Layer normalization (Ba et al. 2016): (x - mean) / √(var + eps) · weight + bias over the last dimension D of x
/// [..., D]. weight and bias [D] f32 may be undefined. Statistics are in f32 whatever x's dtype.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps);
/// RMS normalization (Zhang & Sennrich 2019): x / √(mean(x²) + eps) · weight over the last dimension D of x [..., D];
/// weight [D] f32 may be undefined.
Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps);

/// Batch normalization (Ioffe & Szegedy 2015) of x [B, C, H, W] or [B, C] over all dimensions but C. In training the
/// statistics of the batch are used, and the running ones are updated in place: running = (1 - momentum) running +
/// momentum batch (the variance unbiased, as in PyTorch). Otherwise the running statistics are used. weight and bias
/// [C] f32 may be undefined. A residual of x's shape and dtype is added, and the activation, the identity or ReLU (else
/// Error), applied to the sum, in the same passes over memory. In training with `batch`, the statistics are those of x
/// and of what other processes have of the batch (torch.nn.SyncBatchNorm), in backward too, until which it must live.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, bool training, float momentum, float eps,
                  Activation activation = Activation::identity, const Tensor& residual = {},
                  const kernels::BatchSum* batch = nullptr);

/// Group normalization (Wu & He 2018; torch.nn.functional.group_norm) of x [B, C, H, W]: (x - mean) / √(var + eps) ·
/// weight + bias, with statistics over all pixels of a sample for each of `groups` groups of adjacent channels. weight
/// and bias [C] f32 may be undefined. The result is in channels-last memory.
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, float eps);

}  // namespace vitrail::ops
