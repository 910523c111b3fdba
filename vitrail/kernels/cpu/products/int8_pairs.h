/// \file
/// Products of int8 for CPUs without instructions for them: pairs of numbers that are widened to 16 bits, of which one
/// instruction adds two products to a sum of 32 bits. That is exact, and twice as fast as f32.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// int8_sums() in pairs: sums [M, N] i32 = a [M, K] i8 · weightᵀ, weight [N, K] i8, all dense. Few rows are multiplied
/// by the weight as it lies; for many, each thread packs a small part of it after the other.
void int8_sums_in_pairs(const Tensor& a, const Tensor& weight, const Tensor& sums);

}  // namespace vitrail::kernels
