/// \file
/// Reductions over dimensions.
#pragma once

#include <span>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Reductions over the dimensions `dims` (all if empty), which are removed or, with keep_dims, kept with size 1. Sums
// run in f32 or f64.

Tensor sum(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
Tensor mean(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
Tensor variance(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false, bool unbiased = true);
/// The largest element; the gradient is shared evenly among equal elements, as in torch.amax.
Tensor amax(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
/// The smallest element; the gradient is shared evenly among equal elements, as in torch.amin.
Tensor amin(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
/// The index (i64) of the largest element along `dim`, the first of equal ones; not differentiable.
Tensor argmax(const Tensor& x, int dim, bool keep_dims = false);

}  // namespace vitrail::ops
