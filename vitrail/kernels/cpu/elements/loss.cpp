#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/loss.cpp"
#include "vitrail/kernels/loss.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
// clang-format off: after simd.h, which sets Highway up
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The loss of one row. With z = x - max and L = log Σ e^z: -Σ p (z - L) = L Σ p - Σ p z. The largest term of z is 0, so
// nothing overflows and large logits lose no digits.
template <class T>
float row_loss(const CrossEntropy& loss, std::int64_t row, const T* x, float& maximum, float& log_sum) {
  const F32 d;
  maximum = max_over(d, x, loss.classes);
  const auto m = hn::Set(d, maximum);
  auto z_sum = hn::Zero(d);   // Σ z
  auto p_sum = hn::Zero(d);   // Σ p of soft targets
  auto pz_sum = hn::Zero(d);  // Σ p z of soft targets
  const float* soft = loss.soft == nullptr ? nullptr : loss.soft + row * loss.classes;
  log_sum = std::log(sum_over(d, loss.classes, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto z = first_lanes(d, hn::Sub(load(d, x + i, part), m), hn::Zero(d), part);
    z_sum = hn::Add(z_sum, z);
    if (soft != nullptr) {
      const auto p = load(d, soft + i, part);
      p_sum = hn::Add(p_sum, p);
      pz_sum = hn::MulAdd(p, z, pz_sum);
    }
    return hn::Add(sum, first_lanes(d, exp(d, z), hn::Zero(d), part));
  }));
  const float given = soft != nullptr ? log_sum * sum_of(d, p_sum) - sum_of(d, pz_sum)
                                      : log_sum - (static_cast<float>(x[loss.labels[row]]) - maximum);
  if (loss.smoothing == 0) {
    return given;
  }
  const float uniform = log_sum - sum_of(d, z_sum) / static_cast<float>(loss.classes);
  return (1 - loss.smoothing) * given + loss.smoothing * uniform;
}

template <class T>
void row_gradient(const CrossEntropy& loss, std::int64_t row, const T* x, float maximum, float log_sum, float scale,
                  T* dx) {
  const F32 d;
  const auto m = hn::Set(d, maximum);
  const auto l = hn::Set(d, log_sum);
  const auto s = hn::Set(d, scale);
  const auto uniform = hn::Set(d, loss.smoothing / static_cast<float>(loss.classes));
  const auto softmax = [&](std::int64_t i, auto part)
                           HWY_ATTR { return exp<T>(d, hn::Sub(hn::Sub(load(d, x + i, part), m), l)); };
  if (loss.soft == nullptr) {
    for_lanes(d, loss.classes, [&](std::int64_t i, auto part) HWY_ATTR {
      store(hn::Mul(s, hn::Sub(softmax(i, part), uniform)), d, dx + i, part);
    });
    // The gradient of the label's own class is computed anew, because correcting the stored one would round it twice.
    const std::int64_t label = loss.labels[row];
    const float p = 1 - loss.smoothing + loss.smoothing / static_cast<float>(loss.classes);
    const float q = std::exp(static_cast<float>(x[label]) - maximum - log_sum);
    dx[label] = T(scale * (q - p));
    return;
  }
  const float* soft = loss.soft + row * loss.classes;
  const auto given = hn::Set(d, 1 - loss.smoothing);
  const float p_sum = sum_over(d, loss.classes, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    return hn::Add(sum, load(d, soft + i, part));
  });
  const auto total = hn::Set(d, (1 - loss.smoothing) * p_sum + loss.smoothing);
  for_lanes(d, loss.classes, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto p = hn::MulAdd(given, load(d, soft + i, part), uniform);
    store(hn::Mul(s, hn::MulSub(softmax(i, part), total, p)), d, dx + i, part);
  });
}

bool ignored(const CrossEntropy& loss, std::int64_t row) {
  return loss.labels != nullptr && loss.labels[row] == loss.ignore_index;
}

void entropy_forward(const CrossEntropy& loss, const void* logits, float* losses, float* maximum, float* log_sum,
                     std::int64_t begin, std::int64_t end) {
  visit_floating(loss.dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row) {
      losses[row] = ignored(loss, row) ? 0.0F
                                       : row_loss(loss, row, static_cast<const T*>(logits) + row * loss.classes,
                                                  maximum[row], log_sum[row]);
    }
  });
}

void entropy_backward(const CrossEntropy& loss, const void* logits, const float* maximum, const float* log_sum,
                      float scale, void* dlogits, std::int64_t begin, std::int64_t end) {
  visit_floating(loss.dtype, [&]<class T>(T) HWY_ATTR {
    for (std::int64_t row = begin; row < end; ++row) {
      T* dx = static_cast<T*>(dlogits) + row * loss.classes;
      if (ignored(loss, row)) {
        std::fill(dx, dx + loss.classes, T(0.0F));
      } else {
        row_gradient(loss, row, static_cast<const T*>(logits) + row * loss.classes, maximum[row], log_sum[row], scale,
                     dx);
      }
    }
  });
}

float point_sum(PointLoss loss, const float* x, const float* target, std::int64_t n) {
  const F32 d;
  const auto zero = hn::Zero(d);
  return sum_over(d, n, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    const auto t = load(d, target + i, part);
    if (loss == PointLoss::squared_error) {
      const auto difference = hn::Sub(v, t);
      return hn::MulAdd(difference, difference, sum);
    }
    const auto soft = hn::Log1p(d, exp(d, hn::Neg(hn::Abs(v))));
    const auto term = hn::Add(hn::NegMulAdd(v, t, hn::Max(v, zero)), soft);
    return hn::Add(sum, first_lanes(d, term, zero, part));
  });
}

void point_gradient(PointLoss loss, const float* x, const float* target, float scale, float* dx, float* dtarget,
                    std::int64_t begin, std::int64_t end) {
  const F32 d;
  for_lanes(d, end - begin, [&](std::int64_t offset, auto part) HWY_ATTR {
    const std::int64_t i = begin + offset;
    const auto v = load(d, x + i, part);
    const auto t = load(d, target + i, part);
    const bool squared = loss == PointLoss::squared_error;
    const auto s = hn::Set(d, squared ? 2 * scale : scale);
    const auto g = hn::Mul(s, hn::Sub(squared ? v : sigmoid(d, v), t));
    store(g, d, dx + i, part);
    if (dtarget != nullptr) {
      store(squared ? hn::Neg(g) : hn::Neg(hn::Mul(s, v)), d, dtarget + i, part);
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(entropy_forward);
HWY_EXPORT(entropy_backward);
HWY_EXPORT(point_sum);
HWY_EXPORT(point_gradient);

constexpr std::int64_t block = 1 << 12;  // elements that one call sums
}  // namespace

void cross_entropy_forward(const CrossEntropy& loss, const void* logits, float* losses, float* maximum,
                           float* log_sum) {
  Profile::traffic(loss.rows * loss.classes, loss.dtype, 1);
  parallel_for(loss.rows, rows_worth_a_thread(loss.classes), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(entropy_forward)(loss, logits, losses, maximum, log_sum, begin, end);
  });
}

void cross_entropy_backward(const CrossEntropy& loss, const void* logits, const float* maximum, const float* log_sum,
                            float scale, void* dlogits) {
  Profile::traffic(loss.rows * loss.classes, loss.dtype, 2);
  parallel_for(loss.rows, rows_worth_a_thread(loss.classes), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(entropy_backward)(loss, logits, maximum, log_sum, scale, dlogits, begin, end);
  });
}

double point_loss_sum(PointLoss loss, const float* x, const float* target, std::int64_t n) {
  Profile::traffic(n, DType::f32, 2);
  std::vector<float> sums(static_cast<std::size_t>((n + block - 1) / block));
  parallel_for(static_cast<std::int64_t>(sums.size()), 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t b = begin; b < end; ++b) {
      sums[static_cast<std::size_t>(b)] =
          HWY_DYNAMIC_DISPATCH(point_sum)(loss, x + b * block, target + b * block, std::min(block, n - b * block));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void point_loss_gradient(PointLoss loss, const float* x, const float* target, float scale, float* dx, float* dtarget,
                         std::int64_t n) {
  Profile::traffic(n, DType::f32, dtarget == nullptr ? 3 : 4);
  parallel_for(n, 4 * block, lines, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(point_gradient)(loss, x, target, scale, dx, dtarget, begin, end);
  });
}

}  // namespace vitrail::kernels
#endif
