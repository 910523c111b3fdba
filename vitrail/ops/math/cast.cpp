#include "vitrail/kernels/cast.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::ops {
namespace {

Tensor converted(const Tensor& x, DType dtype) {
  const Tensor dense = x.contiguous();
  Tensor result = Tensor::empty(x.shape(), dtype);
  kernels::cast(dense.raw(), dense.dtype(), result.raw(), dtype, dense.numel());
  return result;
}

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) {
    return x;
  }
  const Tensor y = converted(x, dtype);
  if (!is_floating(x.dtype()) || !is_floating(dtype)) {
    return y;
  }
  return autograd::record("cast", y, {&x}, [from = x.dtype(), dx = autograd::Gradient(x)](const Tensor& dy) {
    dx.add(converted(dy, from));
  });
}

}  // namespace vitrail::ops
