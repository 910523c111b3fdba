#include "vitrail/ops/math/broadcast.h"

#include <array>
#include <span>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/reduce.h"

namespace vitrail::ops {
namespace {

Tensor reduce_to(kernels::Reduction reduction, std::span<const kernels::Operand> operands, const Shape& full,
                 const Shape& shape, DType dtype) {
  Tensor result = Tensor::empty(shape, dtype);
  kernels::reduce(reduction, operands, result.raw(), repeated_strides(shape, full), full, dtype);
  return result;
}

}  // namespace

void check_floating(const char* op, const Tensor& x) {
  check(is_floating(x.dtype()), "{}() works on f32 and bf16, not on {}", op, name_of(x.dtype()));
}

Tensor apply(kernels::Elementwise function, std::initializer_list<Tensor> operands, float p, float q) {
  Shape shape;
  for (const Tensor& operand : operands) {
    shape = broadcast(shape, operand.shape());
  }
  std::array<kernels::Operand, 3> views;
  std::size_t count = 0;
  for (const Tensor& operand : operands) {
    views[count++] = {operand.raw(), operand.expand(shape).strides()};
  }
  Tensor result = Tensor::empty(shape, operands.begin()->dtype());
  kernels::elementwise(function, std::span(views).first(count), result.raw(), shape, result.dtype(), p, q);
  return result;
}

Shape repeated_strides(const Shape& shape, const Shape& full) {
  const Shape dense = shape.contiguous_strides();
  Shape strides = full;
  for (int i = 1; i <= full.rank(); ++i) {
    strides[-i] = i <= shape.rank() && shape[-i] == full[-i] ? dense[-i] : 0;
  }
  return strides;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) {
    return x;
  }
  const std::array operands = {kernels::Operand{x.raw(), x.strides()}};
  return reduce_to(kernels::Reduction::sum, operands, x.shape(), shape, x.dtype());
}

Tensor sum_product_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  const Shape full = broadcast(a.shape(), b.shape());
  if (full == shape) {
    return apply(kernels::Elementwise::multiply, {a, b});
  }
  const Tensor x = a.expand(full);
  const Tensor y = b.expand(full);
  const std::array operands = {kernels::Operand{x.raw(), x.strides()}, kernels::Operand{y.raw(), y.strides()}};
  return reduce_to(kernels::Reduction::product, operands, full, shape, a.dtype());
}

}  // namespace vitrail::ops
