/// \file
/// Elements, rows and slices gathered by index.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// The rows [..., D] of table [V, D] at indices [...] i64 in 0 … V-1 (the Error names one outside). The gradients of
/// repeated indices are added. The row `padding`, unless it is -1, gets none, as by padding_idx of torch.nn.Embedding.
Tensor embedding(const Tensor& table, const Tensor& indices, std::int64_t padding = -1);
/// The elements of x at `indices` (i64) along `dim`, as torch.gather; the result has the shape of `indices`, which
/// agrees with x in all other dimensions.
Tensor gather(const Tensor& x, int dim, const Tensor& indices);
/// The slices of x along `dim` at indices [K] i64, as torch.index_select.
Tensor index_select(const Tensor& x, int dim, const Tensor& indices);

}  // namespace vitrail::ops
