// Random omission in training. The masks are not stored: forward and backward draw the same Philox numbers.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Zero with probability p, else x / (1 - p) (Srivastava et al. 2014). Element i is kept if draws.uniform(i) >= p.
Tensor dropout(const Tensor& x, float p, Philox draws);
// Stochastic depth (Huang et al. 2016): whole samples x[b] are dropped with probability p, the others scaled by
// 1 / (1 - p) if `scale_by_keep`. Sample b is kept if draws.uniform(b) >= p.
Tensor drop_path(const Tensor& x, float p, Philox draws, bool scale_by_keep = true);

}  // namespace vitrail::ops
