#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/softmax.cpp"
#include "vitrail/kernels/softmax.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// One row of softmax or its logarithm. `room` [width] holds the exponentials in f32 between the passes.
template <class T>
void forward_row(const T* x, T* y, float* room, std::int64_t width, bool logarithm) {
  const F32 d;
  const float largest = max_over(d, x, width);
  const auto m = hn::Set(d, largest);
  const float total = sum_over(d, width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto e = exp<T>(d, hn::Sub(load(d, x + i, part), m));
    if (!logarithm) {
      store(e, d, room + i, part);
    }
    return hn::Add(sum, first_lanes(d, e, hn::Zero(d), part));
  });
  const auto scale = hn::Set(d, 1.0F / total);
  const auto log_total = hn::Set(d, std::log(total));
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v =
        logarithm ? hn::Sub(hn::Sub(load(d, x + i, part), m), log_total) : hn::Mul(load(d, room + i, part), scale);
    store(v, d, y + i, part);
  });
}

template <class T>
void backward_row(const T* y, const T* dy, T* dx, std::int64_t width, bool logarithm) {
  const F32 d;
  const auto total = hn::Set(d, sum_over(d, width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
                               const auto g = load(d, dy + i, part);
                               return logarithm ? hn::Add(sum, g) : hn::MulAdd(g, load(d, y + i, part), sum);
                             }));
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto g = load(d, dy + i, part);
    const auto v = load(d, y + i, part);
    store(logarithm ? hn::NegMulAdd(exp<T>(d, v), total, g) : hn::Mul(v, hn::Sub(g, total)), d, dx + i, part);
  });
}

void forward(const RowSoftmax& softmax, const void* x, void* y, std::int64_t begin, std::int64_t end) {
  visit_floating(softmax.dtype, [&]<class T>(T) HWY_ATTR {
    std::vector<float> room(std::is_same_v<T, float> ? 0 : static_cast<std::size_t>(softmax.width));
    for (std::int64_t row = begin; row < end; ++row) {
      T* out = static_cast<T*>(y) + row * softmax.width;
      float* exponentials = room.data();
      if constexpr (std::is_same_v<T, float>) {
        exponentials = out;
      }
      forward_row(static_cast<const T*>(x) + row * softmax.width, out, exponentials, softmax.width, softmax.logarithm);
    }
  });
}

void backward(const RowSoftmax& softmax, const void* y, const void* dy, void* dx, std::int64_t begin,
              std::int64_t end) {
  visit_floating(softmax.dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t at = begin * softmax.width; at < end * softmax.width; at += softmax.width) {
      backward_row(static_cast<const T*>(y) + at, static_cast<const T*>(dy) + at, static_cast<T*>(dx) + at,
                   softmax.width, softmax.logarithm);
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
}  // namespace

void softmax_forward(const RowSoftmax& softmax, const void* x, void* y) {
  Profile::traffic(softmax.rows * softmax.width, softmax.dtype, 2);
  parallel_for(softmax.rows, rows_worth_a_thread(softmax.width), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(forward)(softmax, x, y, begin, end);
  });
}

void softmax_backward(const RowSoftmax& softmax, const void* y, const void* dy, void* dx) {
  Profile::traffic(softmax.rows * softmax.width, softmax.dtype, 3);
  parallel_for(softmax.rows, rows_worth_a_thread(softmax.width), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(backward)(softmax, y, dy, dx, begin, end);
  });
}

}  // namespace vitrail::kernels
#endif
