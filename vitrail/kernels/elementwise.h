// Functions of one, two or three tensors, element by element, with broadcasting.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/kernels/operand.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// The functions, of operands a, b, c and the numbers p and q. A maximum or minimum with NaN is NaN.
enum class Elementwise : std::uint8_t {
  affine,    // p a + q
  power,     // aᵖ
  clamp,     // a between p and q
  exp,       // eᵃ
  log,       // ln a
  sqrt,      // √a
  rsqrt,     // 1 / √a
  abs,       // |a|
  add,       // a + b
  subtract,  // a - b
  multiply,  // p a b
  divide,    // p a / b
  maximum,
  minimum,
  equal,           // 1 where a = b, else 0
  power_gradient,  // a p bᵖ⁻¹
  clamp_gradient,  // a where p ≤ b ≤ q, else 0
  rsqrt_gradient,  // -a b³ / 2, where b is the result
  abs_gradient,    // a sign(b)
  negative_ratio,  // -a b / c: the gradient of x / c in c, given b = x / c
  where_equal,     // a where b = c, else 0
  where_winner     // a where b > c, half of it where b = c, 0 where b < c
};

// out[i] = function(a[i], …) over `shape`. f32 or bf16 for all, computed in f32; out is dense, in row-major order, and
// may be an operand itself if that one is dense too.
void elementwise(Elementwise function, std::span<const Operand> operands, void* out, const Shape& shape, DType dtype,
                 float p = 1, float q = 0);

}  // namespace vitrail::kernels
