// Rotary position embedding (RoFormer: Su et al. 2024).
#pragma once

#include "vitrail/kernels/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using kernels::RotaryPairs;  // adjacent: elements 2i and 2i + 1 turn together (GPT-J, timm); halves: i and i + d/2
                             // (LLaMA)

// By which angles the rows of queries and keys are turned; undefined for not at all. Made by rotation(), once for all
// layers that turn alike.
struct Rotation {
  Tensor angles;                 // [N, d/2] or [H, N, d/2] f32, in radians; differentiable
  kernels::RotaryTables tables;  // their cosines and sines

  bool defined() const { return angles.defined(); }
};

// `angles` [N, d/2], or [H, N, d/2] with angles of each head's own, f32. The first `prefix` tokens are not turned: row
// 0 of the angles is that of token `prefix`.
Rotation rotation(const Tensor& angles, RotaryPairs pairs = RotaryPairs::adjacent, std::int64_t prefix = 0);

// Each pair (x₁, x₂) of the row of token n turned by its angle θ (RoFormer, section 3.2):
//   y₁ = x₁ cos θ - x₂ sin θ,   y₂ = x₁ sin θ + x₂ cos θ.
// With θ proportional to the position, q · k then depends on the offset of their positions alone.
// x [B, H, prefix + N, d], f32 or bf16, any strides → [B, H, prefix + N, d], whose memory is laid out as [B, N, H, d].
// The arithmetic is in f32. Differentiable in x and in the angles. Error if shapes do not agree.
Tensor rotate(const Tensor& x, const Rotation& rotation);

// The same for queries and keys in one projection qkv [B, prefix + N, 3, H, d], as attention_packed() takes it; the
// values are copied.
Tensor rotate_packed(const Tensor& qkv, const Rotation& rotation);

}  // namespace vitrail::ops
