#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "vitrail/kernels/choice.h"

namespace vitrail::kernels {

std::int64_t draw(std::span<const float> weights, double uniform) {
  const double bound = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  std::size_t last = 0;  // the last one that can be drawn, should rounding leave a rest
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      sum += static_cast<double>(weights[i]);
      last = i;
      if (sum > bound) {
        break;
      }
    }
  }
  return static_cast<std::int64_t>(last);
}

void draw_many(std::span<const float> weights, bool replacement, const Philox& draws, std::uint64_t first,
               std::span<std::int64_t> out) {
  if (!replacement && out.size() > 1) {
    // The first arrivals of exponential races (Efraimidis & Spirakis 2006), as in PyTorch.
    std::vector<float> speeds(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double uniform = (draws.uniform(first + i) + 0x1p-25) / (1 + 0x1p-24);  // neither 0 nor 1
      speeds[i] = weights[i] > 0
                      ? static_cast<float>(std::log(static_cast<double>(weights[i])) - std::log(-std::log(uniform)))
                      : -std::numeric_limits<float>::infinity();
    }
    std::ranges::copy(largest(speeds, std::ssize(out)), out.begin());
    return;
  }
  std::vector<double> sums(weights.begin(), weights.end());
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  const auto end = std::ranges::lower_bound(sums, sums.back());  // behind it nothing has a weight
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto place = std::upper_bound(sums.begin(), end, draws.uniform(first + i) * sums.back());
    out[i] = place - sums.begin();
  }
}

}  // namespace vitrail::kernels
