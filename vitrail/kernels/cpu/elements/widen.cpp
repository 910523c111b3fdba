
#include "vitrail/kernels/cast.h"

namespace vitrail::kernels {
namespace {

bool lies_channels_last(const Tensor& x) {
  return x.rank() == 4 && !x.is_contiguous() && x.permute({0, 2, 3, 1}).is_contiguous();
}

}  // namespace

Tensor widened(const Tensor& x) {
  if (x.dtype() == DType::f32) {
    return x;
  }
  if (lies_channels_last(x)) {
    return widened(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
  const Tensor dense = x.contiguous();
  Tensor result = Tensor::empty(x.shape());
  cast(dense.raw(), dense.dtype(), result.raw(), DType::f32, x.numel());
  return result;
}

void narrow_into(const Tensor& from, const Tensor& to) {
  if (lies_channels_last(to)) {
    return narrow_into(from.permute({0, 2, 3, 1}), to.permute({0, 2, 3, 1}));
  }
  check(to.is_contiguous(), "narrow_into: the result must be row-major or channels-last");
  cast(from.contiguous().raw(), DType::f32, to.raw(), to.dtype(), to.numel());
}

}  // namespace vitrail::kernels
