#include "vitrail/ops/broadcast.h"

#include <array>
#include <span>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/reduce.h"

namespace vitrail::ops {
namespace {

// The strides of a dense tensor of `shape` seen as `full`: 0 where it is repeated.
Shape repeated_strides(const Shape& shape, const Shape& full) {
  const Shape dense = shape.contiguous_strides();
  Shape strides = full;
  for (int i = 1; i <= full.rank(); ++i) {
    strides[-i] = i <= shape.rank() && shape[-i] == full[-i] ? dense[-i] : 0;
  }
  return strides;
}

Tensor reduce_to(kernels::Reduction reduction, std::span<const kernels::Operand> operands, const Shape& full,
                 const Shape& shape, DType dtype) {
  Tensor result = Tensor::empty(shape, dtype);
  kernels::reduce(reduction, operands, result.raw(), repeated_strides(shape, full), full, dtype);
  return result;
}

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) {
    return x;
  }
  const std::array operands = {kernels::Operand{x.raw(), x.strides()}};
  return reduce_to(kernels::Reduction::sum, operands, x.shape(), shape, x.dtype());
}

Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  const Shape full = broadcast(a.shape(), b.shape());
  const Tensor x = a.expand(full);
  const Tensor y = b.expand(full);
  const std::array operands = {kernels::Operand{x.raw(), x.strides()}, kernels::Operand{y.raw(), y.strides()}};
  if (full == shape) {
    Tensor result = Tensor::empty(shape, a.dtype());
    kernels::elementwise(kernels::Elementwise::multiply, operands, result.raw(), shape, a.dtype());
    return result;
  }
  return reduce_to(kernels::Reduction::product, operands, full, shape, a.dtype());
}

}  // namespace vitrail::ops
