// Elementwise kernels with broadcasting, and its adjoint: what ops are made of. Nothing here is recorded.
#pragma once

#include <initializer_list>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Error, naming `op`, unless x is f32 or bf16.
void check_floating(const char* op, const Tensor& x);

// function(operands…) over the shape that they take together, with the numbers p and q of the function.
Tensor apply(kernels::Elementwise function, std::initializer_list<Tensor> operands, float p = 1, float q = 0);

// The strides of a dense tensor of `shape` seen as `full`: 0 where it is repeated.
Shape repeated_strides(const Shape& shape, const Shape& full);

// x summed over the dimensions in which `shape` was repeated to become x's shape: the adjoint of expand(). x itself if
// there are none. f32 sums for any dtype.
Tensor sum_to(const Tensor& x, const Shape& shape);

// sum_to(a · b, shape), a and b of one shape after broadcasting, without storing the products if they are summed.
Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape);

}  // namespace vitrail::ops
