/// \file
/// Attention of few queries to keys and values that are read where they lie, without a gradient.
#pragma once

#include "vitrail/kernels/cached_attention.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using kernels::CachedRows;
using kernels::CachedScores;

/// softmax(scale · q kᵀ) v for q [B, H, N, d] f32 or bf16 (any strides with the last dimension dense), keys [B, G, M,
/// d] and values [B, G, M, e] of a cache, which may be f32, bf16 or i8 with scales → [B, H, N, e] of q's dtype, whose
/// memory is laid out as [B, N, H, e]. G divides H. Each key is read once for all heads that share it. Throws Error if
/// the shapes do not agree, or if a gradient is wanted.
Tensor cached_attention(const Tensor& q, const CachedRows& keys, const CachedRows& values, const CachedScores& scores);

}  // namespace vitrail::ops
