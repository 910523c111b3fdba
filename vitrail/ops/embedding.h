// Rows picked by index.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// table [V, D], indices [...] i64 in 0 … V-1 (Error names one outside) → [..., D]. The gradient adds up at repeated
// indices.
Tensor embedding(const Tensor& table, const Tensor& indices);
// torch.gather along `dim`: result has the shape of `indices` (i64), which agrees with x in all other dimensions.
Tensor gather(const Tensor& x, int dim, const Tensor& indices);
// Whole slices of x along `dim` at indices [K] i64 (torch.index_select).
Tensor index_select(const Tensor& x, int dim, const Tensor& indices);

}  // namespace vitrail::ops
