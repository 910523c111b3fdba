#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/additive.cpp"
#include <algorithm>
#include <vector>

#include "vitrail/kernels/additive_attention.h"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/cpu/simd/thread_sums.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

std::int64_t length_of(const AdditiveAttention& a, std::int64_t memory) {
  return a.lengths == nullptr ? a.length : a.lengths[memory];
}

// y += factor · x.
void add_scaled(const float* x, float factor, float* y, std::int64_t n) {
  const F32 d;
  const auto f = hn::Set(d, factor);
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR { add_to(d, y, i, hn::Mul(f, load(d, x + i, part)), part); });
}

// The probabilities and the mean of the values of one query.
void look(const AdditiveAttention& a, std::int64_t row, std::int64_t memory, float* p, float* out) {
  const F32 d;
  const float* query = a.query + row * a.dim;
  const float* keys = a.key + memory * a.length * a.dim;
  const float* values = a.value + memory * a.length * a.width;
  const std::int64_t length = length_of(a, memory);
  for (std::int64_t m = 0; m < length; ++m) {
    const float* key = keys + m * a.dim;
    p[m] = sum_over(d, a.dim, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
      const auto t = tanh(d, hn::Add(load(d, query + i, part), load(d, key + i, part)));
      return hn::MulAdd(load(d, a.weight + i, part), t, sum);  // lanes beyond the end have the weight 0
    });
  }
  const auto largest = hn::Set(d, max_over(d, p, length));
  const float total = sum_over(d, length, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
    const auto e = exp(d, hn::Sub(load(d, p + i, part), largest));
    store(e, d, p + i, part);
    return hn::Add(sum, first_lanes(d, e, hn::Zero(d), part));
  });
  std::fill(out, out + a.width, 0.0F);
  for (std::int64_t m = 0; m < length; ++m) {
    p[m] /= total;
    add_scaled(values + m * a.width, p[m], out, a.width);
  }
  std::fill(p + length, p + a.length, 0.0F);
}

// The gradients of one query. `dscore` [M] is room for those of its scores; `dweight` is added to, or null.
void look_back(const AdditiveAttention& a, const AdditiveGradients& g, std::int64_t row, std::int64_t memory,
               float* dscore, float* dweight) {
  const F32 d;
  const std::int64_t length = length_of(a, memory);
  const float* p = g.p + row * a.length;
  const float* dout = g.dout + row * a.width;
  float along = 0;  // Σ p dp
  for (std::int64_t m = 0; m < length; ++m) {
    const std::int64_t at = (memory * a.length + m) * a.width;
    dscore[m] = sum_over(d, a.width, [&](auto sum, std::int64_t i, auto part) HWY_ATTR {
      return hn::MulAdd(load(d, dout + i, part), load(d, a.value + at + i, part), sum);
    });
    along += p[m] * dscore[m];
    if (g.dvalue != nullptr) {
      add_scaled(dout, p[m], g.dvalue + at, a.width);
    }
  }
  const float* query = a.query + row * a.dim;
  float* dquery = g.dquery + row * a.dim;
  std::fill(dquery, dquery + a.dim, 0.0F);
  for (std::int64_t m = 0; m < length; ++m) {
    const auto slope = hn::Set(d, p[m] * (dscore[m] - along));
    const std::int64_t at = (memory * a.length + m) * a.dim;
    for_lanes(d, a.dim, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto t = tanh(d, hn::Add(load(d, query + i, part), load(d, a.key + at + i, part)));
      const auto back = hn::Mul(hn::Mul(slope, load(d, a.weight + i, part)), hn::NegMulAdd(t, t, hn::Set(d, 1.0F)));
      add_to(d, dquery, i, back, part);
      if (g.dkey != nullptr) {
        add_to(d, g.dkey + at, i, back, part);
      }
      if (dweight != nullptr) {
        add_to(d, dweight, i, hn::Mul(slope, t), part);
      }
    });
  }
}

void look_at(const AdditiveAttention& a, float* p, float* out, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin * a.each; row < end * a.each; ++row) {
    look(a, row, row / a.each, p + row * a.length, out + row * a.width);
  }
}

void look_back_at(const AdditiveAttention& a, const AdditiveGradients& g, float* dweight, std::int64_t begin,
                  std::int64_t end) {
  std::vector<float> dscore(static_cast<std::size_t>(a.length));
  for (std::int64_t row = begin * a.each; row < end * a.each; ++row) {
    look_back(a, g, row, row / a.each, dscore.data(), dweight);
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(look_at);
HWY_EXPORT(look_back_at);

std::int64_t numbers_of(const AdditiveAttention& a) { return a.each * a.length * (a.dim + a.width); }
}  // namespace

void additive_attention_forward(const AdditiveAttention& a, float* p, float* out) {
  Profile::traffic(a.memories * numbers_of(a), DType::f32, 1);
  parallel_for(a.memories, rows_worth_a_thread(numbers_of(a)), [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(look_at)(a, p, out, begin, end);
  });
}

void additive_attention_backward(const AdditiveAttention& a, const AdditiveGradients& g) {
  Profile::traffic(a.memories * numbers_of(a), DType::f32, 3);
  const std::int64_t grain = rows_worth_a_thread(numbers_of(a));
  ThreadSums dweight(g.dweight, a.dim, threads_for(a.memories, grain));
  parallel_for(a.memories, grain, [&](std::int64_t begin, std::int64_t end, int part) {
    HWY_DYNAMIC_DISPATCH(look_back_at)(a, g, dweight.at(part), begin, end);
  });
  dweight.gather();
}

}  // namespace vitrail::kernels
#endif
