/// \file
/// Additive attention.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// What queries have found.
struct Attended {
  Tensor context;        ///< [R, D] f32
  Tensor probabilities;  ///< [R, M] f32, not differentiable; 0 behind a memory's length
};

/// Additive attention (Bahdanau et al. 2015, section 3.1) of single queries, each to a sequence of its own ("memory"):
///
/// ```text
/// score_rm = Σ_a weight_a tanh(query_ra + key_rma),   p_r = softmax(score_r),   context_r = Σ_m p_rm value_rm
/// ```
///
/// query [R, A], key [S, M, A], value [S, M, D], weight [A], all f32; lengths [S] i64 in 1 … M, or undefined: all M.
/// Query r looks at memory r / each, and memories behind the last query's are not looked at: a decoder's texts that
/// have ended stay where they are. Scores are not kept: backward computes them anew.
Attended additive_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& weight,
                            const Tensor& lengths = {}, std::int64_t each = 1);

}  // namespace vitrail::ops
