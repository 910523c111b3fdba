/// \file
/// Attention of few queries to many keys and values that are read where they lie.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// Keys or values of many tokens.
struct CachedRows {
  Tensor rows;         ///< [B, G, M, d] f32, bf16 or i8, any strides with a dense last dimension
  Tensor scales = {};  ///< of i8: [B, G, M] f32, any strides; a row is its whole numbers times its scale
};

/// Which keys the queries see, and how their scores become probabilities.
struct CachedScores {
  float scale = 1;  ///< the factor of q kᵀ
  /// i64 [B] contiguous: how many keys each sample has, at least as many as queries if `causal`. Undefined: M.
  Tensor lengths = {};
  /// i32 [B, L] contiguous: key j of sample b lies in row slots[b, j]. Undefined: in row j.
  Tensor slots = {};
  bool causal = false;      ///< the queries are the last of the sample's tokens, and see none behind themselves
  std::int64_t window = 0;  ///< with `causal`: a query sees only the last so many tokens, itself included; 0: all
};

/// out = softmax(scale · q kᵀ) v for q [B, H, N, d], keys [B, G, M, d], values [B, G, M, e] and out [B, H, N, e]; q and
/// out are f32 or bf16, of any strides with a dense last dimension, the cache of any dtype. G divides H: H / G adjacent
/// heads share keys and values, which are read once for all of them. The arithmetic is in f32. Nothing is packed: this
/// is for so few queries that reading the cache takes the time.
void cached_attention(const Tensor& q, const CachedRows& keys, const CachedRows& values, const CachedScores& scores,
                      const Tensor& out);

}  // namespace vitrail::kernels
