/// \file
/// Softmax, and losses.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor softmax(const Tensor& x, int dim);      ///< e^x / Σ e^x along dim
Tensor log_softmax(const Tensor& x, int dim);  ///< x - log Σ e^x along dim

/// Cross-entropy, as torch.nn.functional.cross_entropy: the mean over the batch of -Σ_c p_c log_softmax(logits)_c, a
/// scalar f32. logits [B, C] f32 or bf16 (the sums run in f32). The targets [B] i64 in 0 … C-1 (the Error names one
/// outside) become p = (1 - s) onehot + s / C with label smoothing s (Szegedy et al. 2016). Rows whose target is
/// ignore_index count neither in the sum nor in the mean.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing = 0,
                     std::int64_t ignore_index = -100);
/// Cross-entropy as by cross_entropy(), but with soft targets [B, C] f32, which are p itself, smoothed alike; they
/// receive no gradient.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing = 0);
/// The mean of the binary cross-entropy with logits over all elements, a scalar f32. logits and targets have the same
/// shape and are f32 or bf16, computed in f32.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets);
/// The mean of the squared error over all elements, a scalar f32. Both have the same shape and are f32 or bf16,
/// computed in f32.
Tensor mse_loss(const Tensor& prediction, const Tensor& target);

}  // namespace vitrail::ops
