/// \file
/// Choices between elements.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// a where the condition (bool) holds, b elsewhere, as torch.where. All three broadcast; a and b are of one dtype, any.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

}  // namespace vitrail::ops
