#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/tsne.cpp"
#include "vitrail/kernels/tsne.h"

#include <numeric>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The sums over j for one point, lane by lane.
struct Forces {
  V<F32> pull_x, pull_y, push_x, push_y, total;
};

// Adds the terms of the points j … to the sums for a point at (x, y), whose row of p is `p`.
template <class Part>
HWY_INLINE void add_terms(const TsnePoints& points, V<F32> x, V<F32> y, const float* p, std::int64_t j, Part part,
                          Forces& sums) {
  const F32 d;
  const auto dx = hn::Sub(x, load(d, points.x + j, part));
  const auto dy = hn::Sub(y, load(d, points.y + j, part));
  const auto one = hn::Set(d, 1.0F);
  const auto near = hn::Div(one, hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, one)));
  const auto q = first_lanes(d, near, hn::Zero(d), part);
  const auto pull = hn::Mul(load(d, p + j, part), q);
  const auto push = hn::Mul(q, q);
  sums.pull_x = hn::MulAdd(pull, dx, sums.pull_x);
  sums.pull_y = hn::MulAdd(pull, dy, sums.pull_y);
  sums.push_x = hn::MulAdd(push, dx, sums.push_x);
  sums.push_y = hn::MulAdd(push, dy, sums.push_y);
  sums.total = hn::Add(sums.total, q);
}

// The forces on the points begin … end - 1; returns their part of Z.
double forces(const TsnePoints& points, std::int64_t begin, std::int64_t end, float* attraction, float* repulsion) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double z = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto x = hn::Set(d, points.x[i]);
    const auto y = hn::Set(d, points.y[i]);
    const float* p = points.p + i * points.count;
    const auto zero = hn::Zero(d);
    Forces sums{zero, zero, zero, zero, zero};
    const auto add_range = [&](std::int64_t j, std::int64_t last) {
      for (; j + lanes <= last; j += lanes) {
        add_terms(points, x, y, p, j, Whole{}, sums);
      }
      if (j < last) {
        add_terms(points, x, y, p, j, last - j, sums);
      }
    };
    add_range(0, i);  // without the point itself, beside whose q_ii = 1 those of distant points would be lost
    add_range(i + 1, points.count);
    attraction[2 * i] = sum_of(d, sums.pull_x);
    attraction[2 * i + 1] = sum_of(d, sums.pull_y);
    repulsion[2 * i] = sum_of(d, sums.push_x);
    repulsion[2 * i + 1] = sum_of(d, sums.push_y);
    z += static_cast<double>(sum_of(d, sums.total));
  }
  return z;
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(forces);
}  // namespace

double tsne_forces(const TsnePoints& points, float* attraction, float* repulsion) {
  const std::int64_t grain = rows_worth_a_thread(points.count);
  std::vector<double> z(static_cast<std::size_t>(threads_for(points.count, grain)));
  parallel_for(points.count, grain, [&](std::int64_t begin, std::int64_t end, int part) {
    z[static_cast<std::size_t>(part)] = HWY_DYNAMIC_DISPATCH(forces)(points, begin, end, attraction, repulsion);
  });
  return std::accumulate(z.begin(), z.end(), 0.0);
}

}  // namespace vitrail::kernels
#endif
