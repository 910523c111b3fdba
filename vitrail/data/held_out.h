/// \file
/// What is held out of a data set that has no part to evaluate on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::data {

/// The numbers of the items of a data set that are learned from, and of those that are held out; both in order.
struct HeldOut {
  std::vector<std::int64_t> learned;
  std::vector<std::int64_t> held;
};

/// Draws `share` of the items of each class by chance, as many as come nearest to it. `classes` has the class of each
/// item, or -1 for one of none. The same share, seed and classes draw the same items.
HeldOut hold_out(std::span<const std::int64_t> classes, double share, std::uint64_t seed);

}  // namespace vitrail::data
