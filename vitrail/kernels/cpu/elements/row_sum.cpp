#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/row_sum.cpp"
#include "vitrail/kernels/row_sum.h"

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <class T>
float row_sum(const T* x, std::int64_t width) {
  const F32 d;
  return sum_over(d, width,
                  [&](auto sum, std::int64_t i, auto part) HWY_ATTR { return hn::Add(sum, load(d, x + i, part)); });
}

void sums_of(const void* x, DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t width, float* sums,
             std::int64_t begin, std::int64_t end) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row) {
      sums[row] = 0;
      for (std::int64_t i = 0; i < batch; ++i) {
        sums[row] += row_sum(static_cast<const T*>(x) + (i * rows + row) * width, width);
      }
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(sums_of);
}  // namespace

void sum_rows(const Tensor& x, const Tensor& sums) {
  Profile::traffic(x.numel(), x.dtype(), 1);
  parallel_for(x.size(1), rows_worth_a_thread(x.size(0) * x.size(2)), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(sums_of)
    (x.raw(), x.dtype(), x.size(0), x.size(1), x.size(2), sums.data<float>(), begin, end);
  });
}

}  // namespace vitrail::kernels
#endif
