#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/norm.cpp"
#include "vitrail/kernels/norm.h"

#include <cmath>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/cpu/simd/thread_sums.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward_row(const T* x, const float* weight, const float* bias, float eps, T* y, std::int64_t width, bool centered,
                 float& mean, float& rstd) {
  const F32 d;
  const float share = 1.0F / static_cast<float>(width);
  mean = 0;
  if (centered) {
    mean = share * sum_over(d, width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
             return hn::Add(sum, load(d, x + i, part));
           });
  }
  const auto m = hn::Set(d, mean);
  const float variance = share * sum_over(d, width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
                           const auto c = first_lanes(d, hn::Sub(load(d, x + i, part), m), hn::Zero(d), part);
                           return hn::MulAdd(c, c, sum);
                         });
  rstd = 1.0F / std::sqrt(variance + eps);
  const auto r = hn::Set(d, rstd);
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    auto v = hn::Mul(hn::Sub(load(d, x + i, part), m), r);
    if (weight != nullptr) {
      v = hn::Mul(v, load(d, weight + i, part));
    }
    if (bias != nullptr) {
      v = hn::Add(v, load(d, bias + i, part));
    }
    store(v, d, y + i, part);
  });
}

// With x̂ = (x - mean) rstd and g = dy · weight:
//   dx = rstd (g - mean(g) - x̂ mean(g x̂)) + more, with mean(g) only if centered;  dweight += dy x̂;  dbias += dy
template <class T>
void backward_row(const T* x, const float* weight, float mean, float rstd, const T* dy, const T* more, T* dx,
                  float* dweight, float* dbias, std::int64_t width, bool centered) {
  const F32 d;
  const auto m = hn::Set(d, mean);
  const auto r = hn::Set(d, rstd);
  const auto normalized = [&](std::int64_t i, auto part)
                              HWY_ATTR { return hn::Mul(hn::Sub(load(d, x + i, part), m), r); };
  const auto weighted = [&](std::int64_t i, auto part) HWY_ATTR {
    const auto g = load(d, dy + i, part);
    return weight == nullptr ? g : hn::Mul(g, load(d, weight + i, part));
  };
  float g_mean = 0;
  float gx_mean = 0;
  if (dx != nullptr) {
    const float share = 1.0F / static_cast<float>(width);
    auto g_sum = hn::Zero(d);
    gx_mean = share * sum_over(d, width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
                const auto g = weighted(i, part);
                g_sum = hn::Add(g_sum, g);
                return hn::MulAdd(g, normalized(i, part), sum);
              });
    g_mean = centered ? share * sum_of(d, g_sum) : 0.0F;
  }
  const auto gm = hn::Set(d, g_mean);
  const auto gxm = hn::Set(d, gx_mean);
  for_lanes(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto normal = normalized(i, part);
    if (dweight != nullptr) {
      add_to(d, dweight, i, hn::Mul(load(d, dy + i, part), normal), part);
    }
    if (dbias != nullptr) {
      add_to(d, dbias, i, load(d, dy + i, part), part);
    }
    if (dx != nullptr) {
      const auto own = hn::NegMulAdd(normal, gxm, hn::Sub(weighted(i, part), gm));
      store(more == nullptr ? hn::Mul(r, own) : hn::MulAdd(r, own, load(d, more + i, part)), d, dx + i, part);
    }
  });
}

void forward(const RowNorm& norm, const void* x, const float* weight, const float* bias, float eps, void* y,
             float* mean, float* rstd, std::int64_t begin, std::int64_t end) {
  visit_floating(norm.dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row) {
      float m = 0;
      float r = 0;
      forward_row(static_cast<const T*>(x) + row * norm.width, weight, bias, eps, static_cast<T*>(y) + row * norm.width,
                  norm.width, norm.centered, m, r);
      if (mean != nullptr) {
        mean[row] = m;
      }
      if (rstd != nullptr) {
        rstd[row] = r;
      }
    }
  });
}

void backward(const RowNorm& norm, const void* x, const float* weight, const float* mean, const float* rstd,
              const void* dy, const void* more, void* dx, float* dweight, float* dbias, std::int64_t begin,
              std::int64_t end) {
  visit_floating(norm.dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * norm.width;
      backward_row(static_cast<const T*>(x) + at, weight, norm.centered ? mean[row] : 0.0F, rstd[row],
                   static_cast<const T*>(dy) + at, more == nullptr ? nullptr : static_cast<const T*>(more) + at,
                   dx == nullptr ? nullptr : static_cast<T*>(dx) + at, dweight, dbias, norm.width, norm.centered);
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

void norm_forward(const RowNorm& norm, const void* x, const float* weight, const float* bias, float eps, void* y,
                  float* mean, float* rstd) {
  Profile::traffic(norm.rows * norm.width, norm.dtype, 2);
  parallel_for(norm.rows, rows_worth_a_thread(norm.width), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(forward)(norm, x, weight, bias, eps, y, mean, rstd, begin, end);
  });
}

void norm_backward(const RowNorm& norm, const void* x, const float* weight, const float* mean, const float* rstd,
                   const void* dy, const void* more, void* dx, float* dweight, float* dbias) {
  Profile::traffic(norm.rows * norm.width, norm.dtype, 2 + (dx == nullptr ? 0 : 1) + (more == nullptr ? 0 : 1));
  const std::int64_t grain = rows_worth_a_thread(norm.width);
  const int threads = threads_for(norm.rows, grain);
  ThreadSums weight_sums(dweight, norm.width, threads);
  ThreadSums bias_sums(dbias, norm.width, threads);
  parallel_for(norm.rows, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
    HWY_DYNAMIC_DISPATCH(backward)
    (norm, x, weight, mean, rstd, dy, more, dx, weight_sums.at(thread), bias_sums.at(thread), begin, end);
  });
  weight_sums.gather();
  bias_sums.gather();
}

}  // namespace vitrail::kernels
#endif
