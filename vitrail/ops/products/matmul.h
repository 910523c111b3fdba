/// \file
/// Matrix products.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// torch.matmul: [..., M, K] · [..., K, N] → [..., M, N], where the leading dimensions broadcast; a 1-D operand is a
/// row (left) or a column (right) whose dimension is removed from the result. Both are f32 or both bf16 (f32
/// accumulation). Transposed operands are read through their strides.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace vitrail::ops
