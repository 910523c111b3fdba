// Softmax and the losses built on it.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor softmax(const Tensor& x, int dim);      // e^x / Σ e^x along dim
Tensor log_softmax(const Tensor& x, int dim);  // x - log Σ e^x along dim

// Mean over the batch of -Σ_c p_c log_softmax(logits)_c, a scalar f32. logits [B, C] f32 or bf16 (the sums run in f32).
// Hard targets [B] i64 in 0 … C-1 (Error names one outside; ignore_index rows count neither in sum nor in mean) become
// p = (1 - s) onehot + s / C with label smoothing s (Szegedy et al. 2016), as torch's cross_entropy.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing = 0,
                     std::int64_t ignore_index = -100);
// Soft targets [B, C] f32 are p itself, smoothed alike; they receive no gradient.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing = 0);
// Mean of binary cross-entropy with logits over all elements: targets f32 of the same shape.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets);
Tensor mse_loss(const Tensor& prediction, const Tensor& target);

}  // namespace vitrail::ops
