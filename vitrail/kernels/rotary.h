// Rotary position embedding: pairs of elements turned by angles.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// Which elements of a row of d are turned together: (2i, 2i + 1), or (i, i + d/2).
enum class RotaryPairs { adjacent, halves };

// What turns the rows. Both tables are [T, N, d] f32, dense, with T = 1 (all heads alike) or one for each head, and
// hold for each element what it and its partner are multiplied by: cos θ, and -sin θ (first of the pair) or sin θ
// (second).
struct RotaryTables {
  Tensor cosines;
  Tensor sines;
  RotaryPairs pairs = RotaryPairs::adjacent;
  std::int64_t prefix = 0;  // tokens in front that are left as they are
};

// y = x with the rows of its first `turned` parts turned, or turned back, the others copied. x [B, P + N, parts, H, d]
// f32 or bf16 with any strides, the last dimension dense; y of the same shape, dense.
void rotary(const Tensor& x, const RotaryTables& tables, std::int64_t turned, bool back, const Tensor& y);

// The gradient of the angles, [T, N, d/2] f32: Σ y₁ dy₂ - y₂ dy₁ over samples, turned parts, and heads where T = 1. y
// and dy [B, P + N, parts, H, d], the last dimension dense.
void rotary_angle_gradient(const Tensor& y, const Tensor& dy, const RotaryTables& tables, std::int64_t turned,
                           const Tensor& dangles);

}  // namespace vitrail::kernels
