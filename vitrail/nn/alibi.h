// Attention with linear biases (ALiBi: Press et al. 2022).
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// How much each of H heads takes off a score for each unit of distance: 2^(-8 h / H), h = 1 … H, for a
// power of two; else those of the largest power of two P below, and every other one of 2 P's, as the authors' code has
// it.
std::vector<float> alibi_slopes(std::int64_t num_heads);

// Of patches row by row, whose distance is that of their numbers, |i - j|; or on their grid, where it is Euclidean (as
// in CROMA: Fuller et al. 2023).
enum class AlibiKind { sequence, grid };

// -slope_h · distance(i, j): [1, H, prefix + N, prefix + N] f32 for the N patches of `grid`; 0 to and from the tokens
// in front, which lie nowhere.
Tensor alibi_bias(AlibiKind kind, const Size2& grid, std::int64_t num_heads, std::int64_t prefix);

}  // namespace vitrail::nn
