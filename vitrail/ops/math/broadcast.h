/// \file
/// Elementwise kernels with broadcasting, and its adjoint, from which ops are built. Nothing here is recorded on the
/// tape.
#pragma once

#include <initializer_list>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Error, naming `op`, unless x is f32 or bf16.
void check_floating(const char* op, const Tensor& x);

/// function(operands…) over the shape to which the operands broadcast; p and q are the scalars of the function (see
/// kernels::Elementwise).
Tensor apply(kernels::Elementwise function, std::initializer_list<Tensor> operands, float p = 1, float q = 0);

/// The strides of a dense tensor of `shape` when it is broadcast to `full`: 0 in the dimensions in which it is
/// repeated.
Shape repeated_strides(const Shape& shape, const Shape& full);

/// x summed over the dimensions in which `shape` was repeated to become x's shape: the adjoint of expand(). x itself if
/// there are none. Sums run in f32 or f64 for any dtype.
Tensor sum_to(const Tensor& x, const Shape& shape);

/// sum_to(a · b, shape) for a and b that broadcast together, without storing the products if they are summed.
Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape);

}  // namespace vitrail::ops
