/// \file
/// Elementwise functions of one, two or three tensors, with broadcasting.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/kernels/operand.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The elementwise functions of operands a, b, c and scalars p and q. A maximum or minimum with NaN is NaN.
enum class Elementwise : std::uint8_t {
  affine,    ///< p a + q
  power,     ///< aᵖ
  clamp,     ///< a limited to [p, q]
  exp,       ///< eᵃ
  log,       ///< ln a
  sqrt,      ///< √a
  rsqrt,     ///< 1 / √a
  abs,       ///< |a|
  add,       ///< a + b
  subtract,  ///< a - b
  multiply,  ///< p a b
  divide,    ///< p a / b
  maximum,
  minimum,
  equal,           ///< 1 where a = b, else 0
  power_gradient,  ///< a p bᵖ⁻¹
  clamp_gradient,  ///< a where p ≤ b ≤ q, else 0
  rsqrt_gradient,  ///< -a b³ / 2, where b is the result
  abs_gradient,    ///< a sign(b)
  negative_ratio,  ///< -a b / c: the gradient of x / c in c, given b = x / c
  where_equal,     ///< a where b = c, else 0
  where_winner     ///< a where b > c, half of it where b = c, 0 where b < c
};

/// out[i] = function(a[i], …) over `shape`; the one to three operands are read through their strides. All are f32 or
/// all bf16, computed in f32. out is dense, in row-major order, and may be the memory of an operand that is dense in
/// that order too.
void elementwise(Elementwise function, std::span<const Operand> operands, void* out, const Shape& shape, DType dtype,
                 float p = 1, float q = 0);

}  // namespace vitrail::kernels
