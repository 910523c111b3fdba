/// \file
/// Attention with linear biases (ALiBi: Press et al. 2022).
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// How much each of H heads subtracts from a score per unit of distance: 2^(-8 h / H), h = 1 … H, if H is a power of
/// two. Otherwise these are the slopes of the largest power of two P below H, followed by every other slope of 2 P
/// heads, as in the authors' code. Throws Error unless there is a head.
std::vector<float> alibi_slopes(std::int64_t num_heads);

/// What the distance of two patches is: that of their indices row by row, |i - j| (sequence), or the Euclidean distance
/// on their grid (grid, as in CROMA: Fuller et al. 2023).
enum class AlibiKind { sequence, grid };

/// The bias -slope_h · distance(i, j), [1, H, prefix + N, prefix + N] f32 for the N patches of `grid`. It is 0 to and
/// from the prefix tokens, which lie nowhere.
Tensor alibi_bias(AlibiKind kind, const Size2& grid, std::int64_t num_heads, std::int64_t prefix);

}  // namespace vitrail::nn
