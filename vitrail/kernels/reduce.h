/// \file
/// Sums, maxima and minima over some dimensions of a tensor.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/kernels/operand.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

enum class Reduction : std::uint8_t {
  sum,      ///< Σ a
  product,  ///< Σ a b, without storing the products
  maximum,  ///< NaN if any element is NaN, as is the minimum
  minimum
};

/// Reduces `operands` (one; two for `product`), read through their strides over `shape`, into `out`, whose strides over
/// `shape` are `out_strides`: 0 for the dimensions that are reduced. The result is multiplied by `scale`. All are f32
/// or all bf16; sums run in f32 over short runs and in f64 over the runs, in an order that depends on the shapes alone.
/// A reduction of no elements gives scale · 0 for the sums, scale · -∞ for the maximum and scale · ∞ for the minimum.
void reduce(Reduction reduction, std::span<const Operand> operands, void* out, const Shape& out_strides,
            const Shape& shape, DType dtype, float scale = 1);

}  // namespace vitrail::kernels
