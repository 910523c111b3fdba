#include "vitrail/tensor/symmetric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>

namespace vitrail {

SymmetricEigen symmetric_eigen(std::vector<double> a, std::int64_t n) {
  const auto at = [n](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  std::vector<double> v(a.size());
  for (std::int64_t i = 0; i < n; ++i) {
    v[at(i, i)] = 1;
  }
  for (int sweep = 0; sweep < 50; ++sweep) {
    double off = 0;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        off += a[at(p, q)] * a[at(p, q)];
        if (a[at(p, q)] == 0) {
          continue;
        }
        const double theta = (a[at(q, q)] - a[at(p, p)]) / (2 * a[at(p, q)]);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        const auto turn = [c, s](double& x, double& y) {
          const double old = x;
          x = c * old - s * y;
          y = s * old + c * y;
        };
        for (std::int64_t k = 0; k < n; ++k) {
          turn(a[at(k, p)], a[at(k, q)]);
        }
        for (std::int64_t k = 0; k < n; ++k) {
          turn(a[at(p, k)], a[at(q, k)]);
          turn(v[at(p, k)], v[at(q, k)]);
        }
      }
    }
    if (off == 0) {
      break;
    }
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t i) { return a[at(i, i)]; });
  SymmetricEigen result;
  for (const std::int64_t i : order) {
    result.values.push_back(a[at(i, i)]);
    result.vectors.insert(result.vectors.end(), v.begin() + i * n, v.begin() + (i + 1) * n);
  }
  return result;
}

}  // namespace vitrail
