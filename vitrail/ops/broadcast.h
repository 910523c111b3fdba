// Broadcasting and its adjoint, for the backward of ops. Nothing here is recorded.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x summed over the dimensions in which `shape` was repeated to become x's shape: the adjoint of expand(). x itself if
// there are none. f32 sums for any dtype.
Tensor sum_to(const Tensor& x, const Shape& shape);

// sum_to(a · b, shape), a and b of one shape after broadcasting, without storing the products if they are summed.
Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape);

}  // namespace vitrail::ops
