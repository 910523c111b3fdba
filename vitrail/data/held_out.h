/// \file
/// What is held out of a data set that has no part to evaluate on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace vitrail::data {

/// The numbers of the items of a data set that are learned from, and of those that are held out; both in order.
struct HeldOut {
  std::vector<std::int64_t> learned;
  std::vector<std::int64_t> held;
};

/// Draws `share` of the items, to the nearest number, and of each class (`classes`, -1 for an item of none) as nearly
/// the share as can be, but never all of one. Which ones is decided by the hashes of their names and the seed: the
/// order of items and classes changes nothing, and most stay where they are when others come to them.
HeldOut hold_out(std::span<const std::int64_t> classes, const std::function<std::string(std::int64_t item)>& name,
                 double share, std::uint64_t seed = 0);

}  // namespace vitrail::data
