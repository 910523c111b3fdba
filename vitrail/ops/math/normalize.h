/// \file
/// Vectors of length 1.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// torch.nn.functional.normalize over the last dimension of x [..., D] f32: x / max(|x|, eps).
Tensor normalize(const Tensor& x, float eps = 1e-12F);

}  // namespace vitrail::ops
