#include "vitrail/data/held_out.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "vitrail/tensor/random.h"

namespace vitrail::data {

HeldOut hold_out(std::span<const std::int64_t> classes, const std::function<std::string(std::int64_t)>& name,
                 double share, std::uint64_t seed) {
  using Item = std::tuple<std::uint64_t, std::string, std::int64_t>;  // in the order in which they are drawn
  std::map<std::int64_t, std::vector<Item>> by_class;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto item = static_cast<std::int64_t>(i);
    std::string own = name(item);
    const std::uint64_t place = mix(mix(seed, hash("held out")), hash(own));
    by_class[classes[i]].emplace_back(place, std::move(own), item);
  }
  // Each class gives the whole part of its share, and those with the largest rests one more, until there are enough.
  struct Quota {
    double rest = 0;
    Item first;
    std::int64_t label = 0;
    std::int64_t count = 0;
  };
  std::vector<Quota> quotas;
  auto missing = std::llround(share * static_cast<double>(classes.size()));
  for (auto& [label, items] : by_class) {
    std::ranges::sort(items);
    const double wanted = share * static_cast<double>(items.size());
    const auto whole = static_cast<std::int64_t>(wanted + 1e-9);
    quotas.push_back({wanted - static_cast<double>(whole), items.front(), label, whole});
    missing -= whole;
  }
  std::ranges::sort(
      quotas, [](const Quota& a, const Quota& b) { return a.rest != b.rest ? a.rest > b.rest : a.first < b.first; });
  HeldOut result;
  for (const Quota& quota : quotas) {
    const std::vector<Item>& items = by_class.at(quota.label);
    const bool one_more = missing > 0 && quota.count + 1 < std::ssize(items);
    missing -= one_more ? 1 : 0;
    const std::int64_t held = quota.count + (one_more ? 1 : 0);
    for (std::int64_t i = 0; i < std::ssize(items); ++i) {
      (i < held ? result.held : result.learned).push_back(std::get<2>(items[static_cast<std::size_t>(i)]));
    }
  }
  std::ranges::sort(result.held);
  std::ranges::sort(result.learned);
  return result;
}

}  // namespace vitrail::data
