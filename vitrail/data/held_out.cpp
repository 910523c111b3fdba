#include "vitrail/data/held_out.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/data/prefetch.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {

HeldOut hold_out(std::span<const std::int64_t> classes, double share, std::uint64_t seed) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_class;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    by_class[classes[i]].push_back(static_cast<std::int64_t>(i));
  }
  HeldOut result;
  for (const auto& [label, numbers] : by_class) {
    const auto count = std::ssize(numbers);
    const auto held = static_cast<std::int64_t>(std::llround(share * static_cast<double>(count)));
    const auto order =
        plan_batches({.size = count,
                      .batch_size = count,
                      .shuffle = true,
                      .seed = mix(mix(seed, hash("held out")), static_cast<std::uint64_t>(label + 1))})(0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t number = numbers[static_cast<std::size_t>(order.front()[static_cast<std::size_t>(i)].index)];
      (i < held ? result.held : result.learned).push_back(number);
    }
  }
  std::ranges::sort(result.held);
  std::ranges::sort(result.learned);
  return result;
}

}  // namespace vitrail::data
