/// \file
/// Sums of rows.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// sums[m] = Σ over i and n of x[i, m, n]: x [B, M, N] contiguous, f32 or bf16; sums [M] f32. Sums run in f32.
void sum_rows(const Tensor& x, const Tensor& sums);

}  // namespace vitrail::kernels
