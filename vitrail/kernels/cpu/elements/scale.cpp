#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/scale.cpp"
#include "vitrail/kernels/scale.h"

#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/cpu/simd/thread_sums.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward_row(const T* x, const float* weight, const float* bias, const T* residual, T* y, std::int64_t width) {
  const F32 d;
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    auto v = hn::Mul(load(d, x + i, part), load(d, weight + i, part));
    if (bias != nullptr) {
      v = hn::Add(v, load(d, bias + i, part));
    }
    if (residual != nullptr) {
      v = hn::Add(v, load(d, residual + i, part));
    }
    store(v, d, y + i, part);
  });
}

template <class T>
void backward_row(const T* x, const float* weight, const T* dy, T* dx, float* dweight, float* dbias,
                  std::int64_t width) {
  const F32 d;
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto g = load(d, dy + i, part);
    if (dweight != nullptr) {
      store(hn::MulAdd(g, load(d, x + i, part), load(d, dweight + i, part)), d, dweight + i, part);
    }
    if (dbias != nullptr) {
      store(hn::Add(g, load(d, dbias + i, part)), d, dbias + i, part);
    }
    if (dx != nullptr) {
      store(hn::Mul(g, load(d, weight + i, part)), d, dx + i, part);
    }
  });
}

void forward(std::int64_t width, DType dtype, const void* x, const float* weight, const float* bias,
             const void* residual, void* y, std::int64_t begin, std::int64_t end) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t at = begin * width; at < end * width; at += width) {
      forward_row(static_cast<const T*>(x) + at, weight, bias,
                  residual == nullptr ? nullptr : static_cast<const T*>(residual) + at, static_cast<T*>(y) + at, width);
    }
  });
}

void backward(std::int64_t width, DType dtype, const void* x, const float* weight, const void* dy, void* dx,
              float* dweight, float* dbias, std::int64_t begin, std::int64_t end) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t at = begin * width; at < end * width; at += width) {
      backward_row(x == nullptr ? nullptr : static_cast<const T*>(x) + at, weight, static_cast<const T*>(dy) + at,
                   dx == nullptr ? nullptr : static_cast<T*>(dx) + at, dweight, dbias, width);
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

void scale_forward(std::int64_t rows, std::int64_t width, DType dtype, const void* x, const float* weight,
                   const float* bias, const void* residual, void* y) {
  Profile::traffic(rows * width, dtype, residual == nullptr ? 2 : 3);
  parallel_for(rows, rows_worth_a_thread(width), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(forward)(width, dtype, x, weight, bias, residual, y, begin, end);
  });
}

void scale_backward(std::int64_t rows, std::int64_t width, DType dtype, const void* x, const float* weight,
                    const void* dy, void* dx, float* dweight, float* dbias) {
  Profile::traffic(rows * width, dtype, 1 + (x == nullptr ? 0 : 1) + (dx == nullptr ? 0 : 1));
  const std::int64_t grain = rows_worth_a_thread(width);
  const int threads = threads_for(rows, grain);
  ThreadSums weight_sums(dweight, width, threads);
  ThreadSums bias_sums(dbias, width, threads);
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
    HWY_DYNAMIC_DISPATCH(backward)
    (width, dtype, x, weight, dy, dx, weight_sums.at(thread), bias_sums.at(thread), begin, end);
  });
  weight_sums.gather();
  bias_sums.gather();
}

}  // namespace vitrail::kernels
#endif
