/// \file
/// The median of numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace vitrail {

/// The value in the middle, or the mean of the two that are; `values` has one at least.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace vitrail
