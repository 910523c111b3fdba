// Sums and extremes over some dimensions of a tensor.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/kernels/operand.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

enum class Reduction : std::uint8_t {
  sum,      // Σ a
  product,  // Σ a b, without storing the products
  maximum,  // NaN if there is one
  minimum
};

// Reduces `operands` (one; two for `product`), read through their strides over `shape`, into `out`, whose strides over
// `shape` are `out_strides`: 0 for the dimensions that vanish. The result is multiplied by `scale`. f32 or bf16 for
// all; sums run in f32 over short runs and in f64 over those, in an order that depends on the shapes alone. Nothing to
// reduce gives scale · 0 for the sums and minus or plus infinity for the extremes.
void reduce(Reduction reduction, std::span<const Operand> operands, void* out, const Shape& out_strides,
            const Shape& shape, DType dtype, float scale = 1);

}  // namespace vitrail::kernels
