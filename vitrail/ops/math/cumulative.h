/// \file
/// Running sums.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// y_i = x_0 + … + x_i along `dim`, as torch.cumsum. Sums of f32 and bf16 run in f64; those of integers are i64.
Tensor cumsum(const Tensor& x, int dim);

}  // namespace vitrail::ops
