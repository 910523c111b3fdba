#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/optimizer.cpp"
#include "vitrail/kernels/optimizer.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

void adam_range(const Adam& a, float* p, const float* gradient, float* m, float* v, std::int64_t n) {
  const F32 d;
  // Factors that all elements share are computed in double.
  const auto constant = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const auto scale = constant(a.gradient_scale);
  const auto keep = constant(a.decoupled ? 1 - a.lr * a.weight_decay : 1);
  const auto decay = constant(a.decoupled ? 0 : a.weight_decay);
  const auto m_share = constant(1 - a.beta1);
  const auto v_keep = constant(a.beta2);
  const auto v_share = constant(1 - a.beta2);
  const auto v_correction = constant(1 / std::sqrt(1 - std::pow(a.beta2, static_cast<double>(a.step))));
  const auto eps = constant(a.eps);
  const auto rate = constant(a.lr / (1 - std::pow(a.beta1, static_cast<double>(a.step))));
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto before = load(d, p + i, part);
    const auto g = hn::MulAdd(decay, before, hn::Mul(scale, load(d, gradient + i, part)));
    auto first = load(d, m + i, part);
    first = hn::MulAdd(hn::Sub(g, first), m_share, first);
    const auto second = hn::MulAdd(hn::Mul(g, g), v_share, hn::Mul(load(d, v + i, part), v_keep));
    store(first, d, m + i, part);
    store(second, d, v + i, part);
    const auto size = hn::MulAdd(hn::Sqrt(second), v_correction, eps);
    if (a.nesterov) {
      first = hn::MulAdd(hn::Sub(g, first), m_share, first);
    }
    store(hn::NegMulAdd(rate, hn::Div(first, size), hn::Mul(before, keep)), d, p + i, part);
  });
}

void lion_range(const Lion& lion, float* p, const float* gradient, float* m, std::int64_t n) {
  const F32 d;
  const auto constant = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const auto scale = constant(lion.gradient_scale);
  const auto keep = constant(1 - lion.lr * lion.weight_decay);
  const auto rate = constant(lion.lr);
  const auto now = constant(1 - lion.beta1);
  const auto later = constant(1 - lion.beta2);
  const auto zero = hn::Zero(d);
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto g = hn::Mul(scale, load(d, gradient + i, part));
    const auto average = load(d, m + i, part);
    const auto difference = hn::Sub(g, average);
    const auto update = hn::MulAdd(difference, now, average);
    // The rate times the sign of the update: 0 for 0, and NaN for NaN, so that it does not go unnoticed.
    const auto change = hn::IfThenElse(hn::Gt(update, zero), rate,
                                       hn::IfThenElse(hn::Lt(update, zero), hn::Neg(rate), hn::Mul(update, zero)));
    store(hn::Sub(hn::Mul(load(d, p + i, part), keep), change), d, p + i, part);
    store(hn::MulAdd(difference, later, average), d, m + i, part);
  });
}

// LAMB's update u (see Lamb), to be multiplied by lr and the trust ratio, from the new moments.
class LambUpdate {
 public:
  explicit LambUpdate(const Lamb& a)
      : m_correction_(constant(1 / (1 - std::pow(a.beta1, static_cast<double>(a.step))))),
        v_correction_(constant(1 / std::sqrt(1 - std::pow(a.beta2, static_cast<double>(a.step))))),
        eps_(constant(a.eps)),
        decay_(constant(a.weight_decay)) {}

  HWY_INLINE V<F32> operator()(V<F32> p, V<F32> m, V<F32> v) const {
    const F32 d;
    const auto size = hn::MulAdd(hn::Sqrt(v), hn::Set(d, v_correction_), hn::Set(d, eps_));
    return hn::MulAdd(hn::Set(d, decay_), p, hn::Div(hn::Mul(m, hn::Set(d, m_correction_)), size));
  }

 private:
  static float constant(double value) { return static_cast<float>(value); }
  float m_correction_;
  float v_correction_;
  float eps_;
  float decay_;
};

// Updates the moments m and v, and computes Σ p² and Σ u² over the n elements.
void lamb_moments_range(const Lamb& a, const float* p, const float* gradient, float* m, float* v, std::int64_t n,
                        float* p_squares, float* u_squares) {
  const F32 d;
  const LambUpdate update(a);
  const auto scale = hn::Set(d, static_cast<float>(a.gradient_scale));
  const auto m_share = hn::Set(d, static_cast<float>(1 - a.beta1));
  const auto v_keep = hn::Set(d, static_cast<float>(a.beta2));
  const auto v_share = hn::Set(d, static_cast<float>(1 - a.beta2));
  auto weights = hn::Zero(d);
  *u_squares = sum_over(d, n, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto before = load(d, p + i, part);
    const auto g = hn::Mul(scale, load(d, gradient + i, part));
    auto first = load(d, m + i, part);
    first = hn::MulAdd(hn::Sub(g, first), m_share, first);
    const auto second = hn::MulAdd(hn::Mul(g, g), v_share, hn::Mul(load(d, v + i, part), v_keep));
    store(first, d, m + i, part);
    store(second, d, v + i, part);
    weights = hn::MulAdd(before, before, weights);
    const auto u = first_lanes(d, update(before, first, second), hn::Zero(d), part);
    return hn::MulAdd(u, u, sum);
  });
  *p_squares = sum_of(d, weights);
}

void lamb_apply_range(const Lamb& a, double rate, float* p, const float* m, const float* v, std::int64_t n) {
  const F32 d;
  const LambUpdate update(a);
  const auto factor = hn::Set(d, static_cast<float>(rate));
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto before = load(d, p + i, part);
    store(hn::NegMulAdd(factor, update(before, load(d, m + i, part), load(d, v + i, part)), before), d, p + i, part);
  });
}

void sgd_range(const Sgd& sgd, float* p, const float* gradient, float* b, std::int64_t n) {
  const F32 d;
  const auto lr = hn::Set(d, static_cast<float>(sgd.lr));
  const auto decay = hn::Set(d, static_cast<float>(sgd.weight_decay));
  const auto scale = hn::Set(d, static_cast<float>(sgd.gradient_scale));
  const auto momentum = hn::Set(d, static_cast<float>(sgd.momentum));
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto before = load(d, p + i, part);
    auto g = hn::MulAdd(decay, before, hn::Mul(scale, load(d, gradient + i, part)));
    if (b != nullptr) {
      const auto buffer = hn::MulAdd(momentum, load(d, b + i, part), g);
      store(buffer, d, b + i, part);
      g = sgd.nesterov ? hn::MulAdd(momentum, buffer, g) : buffer;
    }
    store(hn::NegMulAdd(lr, g, before), d, p + i, part);
  });
}

void lerp_range(float* a, const float* b, float weight, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto from = load(d, a + i, part);
    store(hn::MulAdd(hn::Sub(load(d, b + i, part), from), hn::Set(d, weight), from), d, a + i, part);
  });
}

void scale_range(float* x, float factor, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(load(d, x + i, part), hn::Set(d, factor)), d, x + i, part);
  });
}

void clamp_range(float* x, float limit, std::int64_t n) {
  const F32 d;
  const auto high = hn::Set(d, limit);
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    const auto clamped = hn::Max(hn::Neg(high), hn::Min(high, v));
    store(hn::IfThenElse(hn::IsNaN(v), v, clamped), d, x + i, part);
  });
}

float squares_range(const float* x, std::int64_t n) {
  const F32 d;
  return sum_over(d, n, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    return hn::MulAdd(v, v, sum);
  });
}

void exchange_range(float* a, float* b, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto kept = load(d, a + i, part);
    store(load(d, b + i, part), d, a + i, part);
    store(kept, d, b + i, part);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(adam_range);
HWY_EXPORT(sgd_range);
HWY_EXPORT(lion_range);
HWY_EXPORT(lamb_moments_range);
HWY_EXPORT(lamb_apply_range);
HWY_EXPORT(lerp_range);
HWY_EXPORT(scale_range);
HWY_EXPORT(clamp_range);
HWY_EXPORT(squares_range);
HWY_EXPORT(exchange_range);

constexpr std::int64_t grain = 1 << 13;  // least elements per thread
constexpr std::int64_t block = 1 << 12;  // elements that are summed in f32

// Calls function(begin, count) for contiguous parts of the n elements, on all threads.
template <class Function>
void over(std::int64_t n, Function&& function) {
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) { function(begin, end - begin); });
}
}  // namespace

void adam_step(const Adam& adam, float* p, const float* gradient, float* m, float* v, std::int64_t n) {
  Profile::traffic(n, DType::f32, 7);
  over(n, [&](std::int64_t i, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(adam_range)(adam, p + i, gradient + i, m + i, v + i, count);
  });
}

void sgd_step(const Sgd& sgd, float* p, const float* gradient, float* b, std::int64_t n) {
  Profile::traffic(n, DType::f32, 4);
  over(n, [&](std::int64_t i, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(sgd_range)(sgd, p + i, gradient + i, b == nullptr ? nullptr : b + i, count);
  });
}

void lion_step(const Lion& lion, float* p, const float* gradient, float* m, std::int64_t n) {
  Profile::traffic(n, DType::f32, 5);
  over(n, [&](std::int64_t i, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(lion_range)(lion, p + i, gradient + i, m + i, count);
  });
}

void lamb_step(const Lamb& lamb, float* p, const float* gradient, float* m, float* v, std::int64_t n) {
  Profile::traffic(n, DType::f32, 10);
  // The squares are summed by blocks, so that the norms do not depend on the number of threads.
  const std::int64_t blocks = (n + block - 1) / block;
  std::vector<float> p_squares(static_cast<std::size_t>(blocks));
  std::vector<float> u_squares(static_cast<std::size_t>(blocks));
  parallel_for(blocks, grain / block, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t i = b * block;
      HWY_DYNAMIC_DISPATCH(lamb_moments_range)
      (lamb, p + i, gradient + i, m + i, v + i, std::min(block, n - i), &p_squares[static_cast<std::size_t>(b)],
       &u_squares[static_cast<std::size_t>(b)]);
    }
  });
  const double p_norm = std::sqrt(std::accumulate(p_squares.begin(), p_squares.end(), 0.0));
  const double u_norm = std::sqrt(std::accumulate(u_squares.begin(), u_squares.end(), 0.0));
  double ratio = lamb.weight_decay != 0 && p_norm > 0 && u_norm > 0 ? p_norm / u_norm : 1;
  ratio = lamb.trust_clip ? std::min(ratio, 1.0) : ratio;
  over(n, [&](std::int64_t i, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(lamb_apply_range)(lamb, lamb.lr * ratio, p + i, m + i, v + i, count);
  });
}

void lerp(float* a, const float* b, float weight, std::int64_t n) {
  Profile::traffic(n, DType::f32, 3);
  over(n, [&](std::int64_t i, std::int64_t count) { HWY_DYNAMIC_DISPATCH(lerp_range)(a + i, b + i, weight, count); });
}

void scale(float* x, float factor, std::int64_t n) {
  Profile::traffic(n, DType::f32, 2);
  over(n, [&](std::int64_t i, std::int64_t count) { HWY_DYNAMIC_DISPATCH(scale_range)(x + i, factor, count); });
}

void clamp(float* x, float limit, std::int64_t n) {
  Profile::traffic(n, DType::f32, 2);
  over(n, [&](std::int64_t i, std::int64_t count) { HWY_DYNAMIC_DISPATCH(clamp_range)(x + i, limit, count); });
}

double sum_of_squares(const float* x, std::int64_t n) {
  Profile::traffic(n, DType::f32, 1);
  std::vector<float> sums(static_cast<std::size_t>((n + block - 1) / block));
  parallel_for(static_cast<std::int64_t>(sums.size()), grain / block, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t b = begin; b < end; ++b) {
      sums[static_cast<std::size_t>(b)] =
          HWY_DYNAMIC_DISPATCH(squares_range)(x + b * block, std::min(block, n - b * block));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void exchange(float* a, float* b, std::int64_t n) {
  Profile::traffic(n, DType::f32, 4);
  over(n, [&](std::int64_t i, std::int64_t count) { HWY_DYNAMIC_DISPATCH(exchange_range)(a + i, b + i, count); });
}

}  // namespace vitrail::kernels
#endif
