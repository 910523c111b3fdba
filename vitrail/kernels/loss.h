/// \file
/// Losses fused with the softmax or sigmoid before them.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The cross-entropy between rows × classes logits of `dtype` (f32 or bf16) and target probabilities p, which are given
/// either by `labels` `[rows]` (p is one-hot) or by `soft` `[rows, classes]` (p itself); the other pointer is null. p
/// is smoothed to (1 - smoothing) p + smoothing / classes. Sums run in f32.
struct CrossEntropy {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  DType dtype = DType::f32;
  const std::int64_t* labels = nullptr;  ///< in 0 … classes - 1, or ignore_index
  const float* soft = nullptr;
  float smoothing = 0;
  std::int64_t ignore_index = -100;
};

/// losses[row] = -Σ_c p_c log_softmax(x)_c for the logits x, or 0 for an ignored row. Writes, for backward,
/// maximum[row] = max_c x_c and log_sum[row] = log Σ_c e^(x_c - maximum[row]).
void cross_entropy_forward(const CrossEntropy& loss, const void* logits, float* losses, float* maximum, float* log_sum);
/// dlogits = scale (softmax(logits) Σ p - p), or 0 for an ignored row.
void cross_entropy_backward(const CrossEntropy& loss, const void* logits, const float* maximum, const float* log_sum,
                            float scale, void* dlogits);

/// Losses of a number x against a target t.
enum class PointLoss {
  binary_cross_entropy,  ///< -t log σ(x) - (1 - t) log(1 - σ(x)) = max(x, 0) - x t + log(1 + e^-|x|)
  squared_error,         ///< (x - t)²
};
/// The sum of the loss over n elements; it does not depend on the number of threads.
double point_loss_sum(PointLoss loss, const float* x, const float* target, std::int64_t n);
/// dx = scale d(loss)/dx and, unless dtarget is null, dtarget = scale d(loss)/dt, for n elements.
void point_loss_gradient(PointLoss loss, const float* x, const float* target, float scale, float* dx, float* dtarget,
                         std::int64_t n);

}  // namespace vitrail::kernels
