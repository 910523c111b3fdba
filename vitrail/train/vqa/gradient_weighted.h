/// \file
/// Gradient-weighted attention: which of an attention's scores raise an answer.
#pragma once

#include <cstdint>
#include <limits>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// Zeros [B, H, N, M] to add to scores, whose gradient is asked for.
inline Tensor score_leaf(std::int64_t questions, std::int64_t heads, std::int64_t words, std::int64_t patches) {
  Tensor zeros = Tensor::zeros({questions, heads, words, patches});
  autograd::require_grad(zeros);
  return zeros;
}

/// By the gradient of a score_leaf(): ∂ answer / ∂ score where it is positive, summed over the heads, [B, N, M].
inline Tensor gradient_weighted(const Tensor& leaf) {
  return ops::sum(ops::clamp(autograd::grad(leaf).detach(), 0, std::numeric_limits<float>::max()), {1});
}

}  // namespace vitrail::train
