/// \file
/// Rotary position embedding: pairs of elements are rotated by angles.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// Which elements of a row of d form a pair, which is rotated together: `adjacent` is (2i, 2i + 1), `halves` is
/// (i, i + d/2).
enum class RotaryPairs { adjacent, halves };

/// The rotation of the rows as tables. Both are [T, N, d] f32, dense, with T = 1 (all heads share them) or T the number
/// of heads. For each element they hold the factors of the element itself, cos θ, and of the other element of its pair,
/// -sin θ (for the first of the pair) or sin θ (for the second).
struct RotaryTables {
  Tensor cosines;
  Tensor sines;
  RotaryPairs pairs = RotaryPairs::adjacent;
  std::int64_t prefix = 0;  ///< tokens in front that are not rotated
};

/// y = x with the rows of its first `turned` parts rotated, or rotated back if `back`; the other parts and the first P
/// tokens are copied. x [B, P + N, parts, H, d], f32 or bf16, has any strides with a dense last dimension; y has the
/// same shape and dtype, dense.
void rotary(const Tensor& x, const RotaryTables& tables, std::int64_t turned, bool back, const Tensor& y);

/// The gradient of the angles, dangles [T, N, d/2] f32: Σ (y₁ dy₂ - y₂ dy₁) for the results y₁, y₂ of each pair, summed
/// over samples, rotated parts and, where T = 1, heads. y and dy [B, P + N, parts, H, d] have a dense last dimension.
void rotary_angle_gradient(const Tensor& y, const Tensor& dy, const RotaryTables& tables, std::int64_t turned,
                           const Tensor& dangles);

}  // namespace vitrail::kernels
