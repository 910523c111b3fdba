#include "vitrail/kernels/widen.h"

namespace vitrail::kernels {

Tensor widened(const Tensor& x) {
  if (x.dtype() == DType::f32) {
    return x;
  }
  const Tensor dense = x.contiguous();
  Tensor result = Tensor::empty(x.shape());
  const bf16* in = dense.data<bf16>();
  float* out = result.data<float>();
  const std::int64_t n = x.numel();
#pragma omp parallel for simd schedule(static) if (n > 1 << 15)
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(in[i]);
  }
  return result;
}

void narrow_into(const Tensor& from, const Tensor& to) {
  if (to.dtype() == DType::f32) {
    return to.copy_from(from);
  }
  const float* in = from.data<float>();
  bf16* out = to.data<bf16>();
  const std::int64_t n = to.numel();
#pragma omp parallel for simd schedule(static) if (n > 1 << 15)
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = bf16(in[i]);
  }
}

}  // namespace vitrail::kernels
