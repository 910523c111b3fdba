// Reductions over dimensions.
#pragma once

#include <span>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Over the dimensions `dims` (all if empty), which vanish or, with keep_dims, stay with size 1. Sums are gathered in
// f32.
Tensor sum(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
Tensor mean(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
Tensor variance(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false, bool unbiased = true);
// Largest and smallest; the gradient is shared evenly among equal elements, as PyTorch's amax and amin.
Tensor amax(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
Tensor amin(const Tensor& x, const std::vector<int>& dims = {}, bool keep_dims = false);
// Index (i64) of the largest element along `dim`, the first of equals; not differentiable.
Tensor argmax(const Tensor& x, int dim, bool keep_dims = false);

}  // namespace vitrail::ops
