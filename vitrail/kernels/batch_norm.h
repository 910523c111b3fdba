// Batch normalization (oneDNN).
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// x, y and their gradients: [B, C, H, W], f32 or bf16, channels-last, not empty. mean and variance [C] f32: the batch's
// own (biased), written, if `training`; given otherwise. scale_shift [2, C] f32: the factors, then the offsets.
void batch_norm(const Tensor& x, const Tensor& scale_shift, const Tensor& mean, const Tensor& variance, bool training,
                float eps, const Tensor& y);
// dx, and dscale_shift [2, C]. In training the statistics depend on x, otherwise they are constants.
void batch_norm_gradient(const Tensor& x, const Tensor& scale_shift, const Tensor& mean, const Tensor& variance,
                         bool training, float eps, const Tensor& dy, const Tensor& dx, const Tensor& dscale_shift);

}  // namespace vitrail::kernels
