#include "vitrail/train/run/parameter_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

namespace vitrail::train {
namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view name) {
  Parts parts;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    parts.push_back(name.substr(0, dot));
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return parts;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Parses a number or a range: "3" is {3, 3}, "0-5" is {0, 5}.
std::optional<std::pair<std::int64_t, std::int64_t>> range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto low = number(text.substr(0, dash));
  const auto high = dash == std::string_view::npos ? low : number(text.substr(dash + 1));
  return low && high ? std::optional(std::pair(*low, *high)) : std::nullopt;
}

bool within(const std::pair<std::int64_t, std::int64_t>& range, std::int64_t value) {
  return value >= range.first && value <= range.second;
}

bool fits_part(std::string_view part, std::string_view pattern) {
  if (pattern.empty()) {
    return part.empty();
  }
  if (pattern.front() == '*') {
    return fits_part(part, pattern.substr(1)) || (!part.empty() && fits_part(part.substr(1), pattern));
  }
  if (const auto numbers = range(pattern); numbers && number(part)) {
    return within(*numbers, *number(part));
  }
  return !part.empty() && part.front() == pattern.front() && fits_part(part.substr(1), pattern.substr(1));
}

// Whether the parts of a name from `at` on begin with parts that match the pattern's from `from` on. A part "*" of the
// pattern matches one part or several.
bool fits(const Parts& name, std::size_t at, const Parts& pattern, std::size_t from) {
  if (from == pattern.size()) {
    return true;
  }
  if (at == name.size() || !fits_part(name[at], pattern[from])) {
    return false;
  }
  return fits(name, at + 1, pattern, from + 1) || (pattern[from] == "*" && fits(name, at + 1, pattern, from));
}

// Throws Error if a range in the pattern ends at a number that no name has, as blocks.0-9 does in a model of two
// blocks.
void check_ranges(const nn::Network& net, const std::string& pattern, const std::string& flag) {
  const Parts parts = parts_of(pattern);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto numbers = range(parts[i]);
    if (!numbers || numbers->first == numbers->second) {
      continue;
    }
    const std::string last = fmt::format("{}", numbers->second);
    Parts end(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    end[i] = last;
    check(
        std::ranges::any_of(net.parameters.all(),
                            [&](const nn::Parameter& parameter) { return fits(parts_of(parameter.name), 0, end, 0); }),
        "{} {}: there is no {} (`vitrail info --parameters` lists all)", flag, pattern, fmt::join(end, "."));
  }
}

// Throws Error if a range of layers ends beyond the last one.
void check_layers(const nn::Network& net, const std::pair<std::int64_t, std::int64_t>& wanted,
                  const std::string& pattern, const std::string& flag) {
  std::int64_t last = 0;
  for (const nn::Parameter& parameter : net.parameters.all()) {
    last = std::max(last, net.layer_of(parameter.name));
  }
  check(wanted.second <= last, "{} {}: the last layer is {}", flag, pattern, last);
}

}  // namespace

std::set<std::string> parameters_named(const nn::Network& net, const std::vector<std::string>& patterns,
                                       const std::string& flag) {
  constexpr std::string_view layers = "layer:";
  std::set<std::string> result;
  for (const std::string& pattern : patterns) {
    const bool by_layer = pattern.starts_with(layers);
    const auto wanted = range(by_layer ? std::string_view(pattern).substr(layers.size()) : "");
    check(!by_layer || wanted, "{} {}: the number of a layer, or a range of them as in layer:0-6, was expected", flag,
          pattern);
    const Parts parts = parts_of(pattern);
    bool any = false;
    for (const nn::Parameter& parameter : net.parameters.all()) {
      const bool chosen = !parameter.buffer && (by_layer ? within(*wanted, net.layer_of(parameter.name))
                                                         : fits(parts_of(parameter.name), 0, parts, 0));
      if (chosen) {
        result.insert(parameter.name);
        any = true;
      }
    }
    if (!any || parts.empty()) {
      std::vector<std::string_view> known;
      for (const nn::Parameter& parameter : net.parameters.all()) {
        const std::string_view first = std::string_view(parameter.name).substr(0, parameter.name.find('.'));
        if (!parameter.buffer && std::ranges::find(known, first) == known.end()) {
          known.push_back(first);
        }
      }
      fail("{} {}: no parameter's name begins so; there are {} (`vitrail info --parameters` lists all)", flag, pattern,
           fmt::join(known, ", "));
    }
    if (by_layer) {
      check_layers(net, *wanted, pattern, flag);
    } else {
      check_ranges(net, pattern, flag);
    }
  }
  return result;
}

void freeze(nn::Network& network, const std::vector<std::string>& patterns) {
  const std::set<std::string> chosen = parameters_named(network, patterns, "--freeze");
  bool any = false;
  for (const nn::Parameter& parameter : network.parameters.all()) {
    if (chosen.contains(parameter.name)) {
      network.parameters.set_trainable(parameter.name, false);
    }
    any = any || parameter.trainable;
  }
  check(any, "--freeze {} leaves nothing to train", fmt::join(patterns, " "));
}

}  // namespace vitrail::train
