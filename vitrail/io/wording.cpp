#include "vitrail/io/wording.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace vitrail::io {
namespace {

std::string_view singular(std::string_view plural) {
  constexpr std::array<std::string_view, 4> with_e = {"ches", "shes", "sses", "xes"};
  const bool two = std::ranges::any_of(with_e, [&](std::string_view ending) { return plural.ends_with(ending); });
  plural.remove_suffix(two ? 2 : plural.ends_with('s') ? 1 : 0);
  return plural;
}

}  // namespace

std::string counted(std::int64_t count, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular(plural) : plural);
}

std::string capitalized(std::string_view words) {
  std::string result(words);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') {
    result[0] = static_cast<char>(result[0] - 'a' + 'A');
  }
  return result;
}

}  // namespace vitrail::io
