#include "vitrail/models/formats/name_map.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

// What the '#' and the '@' of a pattern stand for in a name.
struct Captures {
  std::vector<std::int64_t> numbers;
  std::string_view rest;
};

constexpr std::string_view next = "#+1";

// The captures if `name` matches `pattern`.
std::optional<Captures> match(std::string_view pattern, std::string_view name) {
  Captures captures;
  while (!pattern.empty()) {
    if (pattern == "@") {
      captures.rest = name;
      return name.empty() ? std::nullopt : std::optional(captures);
    }
    if (pattern.front() == '#') {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error != std::errc()) {
        return std::nullopt;
      }
      const bool is_next = pattern.starts_with(next);
      captures.numbers.push_back(number - (is_next ? 1 : 0));
      pattern.remove_prefix(is_next ? next.size() : 1);
      name.remove_prefix(static_cast<std::size_t>(end - name.data()));
      continue;
    }
    if (name.empty() || name.front() != pattern.front()) {
      return std::nullopt;
    }
    pattern.remove_prefix(1);
    name.remove_prefix(1);
  }
  return name.empty() ? std::optional(captures) : std::nullopt;
}

std::string filled(std::string_view pattern, const Captures& captures) {
  std::string result;
  std::size_t number = 0;
  while (!pattern.empty()) {
    if (pattern.front() == '#') {
      const bool is_next = pattern.starts_with(next);
      result += std::to_string(captures.numbers[number++] + (is_next ? 1 : 0));
      pattern.remove_prefix(is_next ? next.size() : 1);
      continue;
    }
    if (pattern.front() == '@') {
      result += captures.rest;
    } else {
      result += pattern.front();
    }
    pattern.remove_prefix(1);
  }
  return result;
}

}  // namespace

// The patterns that "a.{x,y}.b" stands for, with the prefix or the stack filled in at the beginning.
std::vector<std::string> NameMap::alternatives(std::string_view pattern) const {
  std::string start;
  if (pattern.starts_with('~') || pattern.starts_with('^')) {
    start = pattern.front() == '~' ? prefix_ : stack_;
    pattern.remove_prefix(1);
  }
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    return {start + std::string(pattern)};
  }
  const std::size_t close = pattern.find('}');
  std::vector<std::string> result;
  for (std::string_view inside = pattern.substr(open + 1, close - open - 1);;) {
    const std::size_t comma = inside.find(',');
    result.push_back(
        fmt::format("{}{}{}{}", start, pattern.substr(0, open), inside.substr(0, comma), pattern.substr(close + 1)));
    if (comma == std::string_view::npos) {
      return result;
    }
    inside.remove_prefix(comma + 1);
  }
}

const NameRule* NameMap::find(std::string_view own) const {
  const auto rule =
      std::ranges::find_if(rules_, [&](const NameRule& r) { return !r.own.empty() && match(r.own, own).has_value(); });
  return rule == rules_.end() ? nullptr : &*rule;
}

const NameRule& NameMap::rule_of(std::string_view own) const {
  const NameRule* rule = find(own);
  check(rule != nullptr, "the tensor '{}' has no name in this layout", own);
  return *rule;
}

std::vector<std::string> NameMap::theirs_of(std::string_view own) const {
  if (rules_.empty()) {
    return {std::string(own)};
  }
  const NameRule& rule = rule_of(own);
  const Captures captures = *match(rule.own, own);
  std::vector<std::string> names = alternatives(rule.theirs);
  std::ranges::transform(names, names.begin(), [&](const std::string& name) { return filled(name, captures); });
  return names;
}

std::optional<std::string> NameMap::own_of(std::string_view theirs) const {
  if (rules_.empty()) {
    return std::string(theirs);
  }
  for (const NameRule& rule : rules_) {
    for (const std::string& pattern : alternatives(rule.theirs)) {
      if (const std::optional<Captures> captures = match(pattern, theirs)) {
        return filled(rule.own, *captures);
      }
    }
  }
  return std::nullopt;
}

Tensor NameMap::join(std::string_view own, const std::vector<Tensor>& parts) const {
  const Joining joining = rules_.empty() ? Joining::rows : rule_of(own).joining;
  switch (joining) {
    case Joining::plus_position:
      return ops::cast(parts[0], DType::f32) + ops::cast(ops::narrow(parts[1], 1, 0, 1), DType::f32);
    case Joining::without_position:
      return ops::narrow(parts[0], 1, 1, parts[0].size(1) - 1);
    case Joining::first_third:
    case Joining::last_thirds: {
      const std::int64_t rows = parts[0].rank() > 0 ? parts[0].size(0) : 0;
      check(rows % 3 == 0, "its {} rows are not those of queries, keys and values", rows);
      return joining == Joining::first_third ? ops::narrow(parts[0], 0, 0, rows / 3)
                                             : ops::narrow(parts[0], 0, rows / 3, rows / 3 * 2);
    }
    case Joining::squeezed: {
      Tensor whole = parts[0];
      while (whole.rank() < 3) {
        whole = whole.unsqueeze(0);
      }
      return whole;
    }
    case Joining::rows:
      break;
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, 0);
}

std::vector<std::pair<std::string, Tensor>> NameMap::split(std::string_view own, const Tensor& value) const {
  const std::vector<std::string> names = theirs_of(own);
  const Joining joining = rules_.empty() ? Joining::rows : rule_of(own).joining;
  if (joining == Joining::squeezed) {
    Tensor part = value;
    while (part.rank() > 1 && part.size(0) == 1) {
      part = part.squeeze(0);
    }
    return {{names[0], part}};
  }
  if (joining == Joining::plus_position || names.size() == 1) {
    return {{names[0], joining == Joining::without_position ? ops::pad(value, 1, 1, 0) : value}};
  }
  const auto count = static_cast<std::int64_t>(names.size());
  check(value.size(0) % count == 0, "the {} rows of '{}' cannot be split into {} equal parts", value.size(0), own,
        count);
  const std::vector<Tensor> parts =
      ops::split(value, std::vector<std::int64_t>(names.size(), value.size(0) / count), 0);
  std::vector<std::pair<std::string, Tensor>> result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    result.emplace_back(names[i], parts[i]);
  }
  return result;
}

std::vector<std::pair<std::string, Tensor>> join_parts(std::vector<std::pair<std::string, Tensor>> parts) {
  std::vector<std::pair<std::string, Tensor>> result;
  for (auto& [name, part] : parts) {
    const auto whole = std::ranges::find(result, name, &std::pair<std::string, Tensor>::first);
    if (whole == result.end()) {
      result.emplace_back(std::move(name), std::move(part));
    } else {
      whole->second = ops::concat({whole->second, part}, 0);
    }
  }
  return result;
}

}  // namespace vitrail::models
