/// \file
/// Additive attention (Bahdanau et al. 2015), whose scores are no product of queries and keys.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

/// Queries that look at sequences ("memories"), `each` of them at the same one: query r looks at memory r / each.
///
/// ```text
/// score_rm = Σ_a weight_a tanh(query_ra + key_ma),   p_r = softmax(score_r),   out_r = Σ_m p_rm value_m
/// ```
///
/// All are f32, dense; a memory's m runs over its own length.
struct AdditiveAttention {
  std::int64_t memories;        ///< that are looked at
  std::int64_t each;            ///< queries of a memory
  std::int64_t length;          ///< M, with padding
  std::int64_t dim;             ///< A, of queries and keys
  std::int64_t width;           ///< D, of values
  const std::int64_t* lengths;  ///< [memories], in 1 … M; null: all are M
  const float* query;           ///< [memories · each, A]
  const float* key;             ///< [memories, M, A]
  const float* value;           ///< [memories, M, D]
  const float* weight;          ///< [A]
};
/// Computes p [memories · each, M], which is 0 behind a memory's length, and out [memories · each, D].
void additive_attention_forward(const AdditiveAttention& attention, float* p, float* out);

/// The gradients of an AdditiveAttention.
struct AdditiveGradients {
  const float* p;     ///< as additive_attention_forward() has left it
  const float* dout;  ///< [memories · each, D]
  float* dquery;      ///< is overwritten
  float* dkey;        ///< is added to, or null: not wanted
  float* dvalue;      ///< is added to, or null
  float* dweight;     ///< is overwritten, or null
};
void additive_attention_backward(const AdditiveAttention& attention, const AdditiveGradients& gradients);

}  // namespace vitrail::kernels
