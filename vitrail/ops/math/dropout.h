/// \file
/// Dropout and stochastic depth, for training. The masks are not stored: forward and backward draw the same Philox
/// numbers.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Dropout (Srivastava et al. 2014): each element becomes 0 with probability p, else x / (1 - p). Element i is kept if
/// draws.uniform(i) >= p. Error unless 0 ≤ p ≤ 1.
Tensor dropout(const Tensor& x, float p, Philox draws);
/// Stochastic depth (Huang et al. 2016): whole samples x[b] become 0 with probability p, and the others are scaled by 1
/// / (1 - p) if `scale_by_keep`. Sample b is kept if draws.uniform(b) >= p. Error unless 0 ≤ p ≤ 1.
Tensor drop_path(const Tensor& x, float p, Philox draws, bool scale_by_keep = true);

}  // namespace vitrail::ops
