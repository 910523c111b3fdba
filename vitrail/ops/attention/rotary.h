/// \file
/// Rotary position embedding (RoFormer: Su et al. 2024).
#pragma once

#include "vitrail/kernels/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// adjacent: elements 2i and 2i + 1 are rotated together (GPT-J, timm); halves: i and i + d/2 (LLaMA).
using kernels::RotaryPairs;

/// The rotation of the rows of queries and keys; undefined for none. It is made by rotation(), once for all layers that
/// rotate alike.
struct Rotation {
  Tensor angles;                 ///< [N, d/2] or [H, N, d/2] f32, in radians; differentiable
  kernels::RotaryTables tables;  ///< the cosines and sines of the angles

  bool defined() const { return angles.defined(); }
};

/// The rotation by `angles` [N, d/2] f32, or [H, N, d/2] if each head has angles of its own. The first `prefix` tokens
/// are not rotated: row 0 of the angles is that of token `prefix`.
Rotation rotation(const Tensor& angles, RotaryPairs pairs = RotaryPairs::adjacent, std::int64_t prefix = 0);

/// Rotates each pair (x₁, x₂) of the row of token n by its angle θ (RoFormer, section 3.2):
///
/// ```text
/// y₁ = x₁ cos θ - x₂ sin θ,   y₂ = x₁ sin θ + x₂ cos θ.
/// ```
///
/// With θ proportional to the position, q · k then depends on the positions of q and k only through their difference.
/// x [B, H, prefix + N, d], f32 or bf16, any strides → [B, H, prefix + N, d], whose memory is laid out as [B, N, H, d].
/// The arithmetic is in f32. Differentiable in x and in the angles. Throws Error if the shapes do not agree.
Tensor rotate(const Tensor& x, const Rotation& rotation);

/// rotate() for the queries and keys in one projection qkv [B, prefix + N, 3, H, d], as attention_packed() takes it;
/// the values are copied.
Tensor rotate_packed(const Tensor& qkv, const Rotation& rotation);

}  // namespace vitrail::ops
