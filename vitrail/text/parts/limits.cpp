#include "vitrail/text/parts/limits.h"

#include <algorithm>
#include <utility>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

// Calls `change` for each list of the encoding, with the value that padding has there.
template <class Change>
void for_each_list(Encoding& encoding, const Padding& padding, const Change& change) {
  change(encoding.ids, padding.id);
  change(encoding.type_ids, padding.type_id);
  change(encoding.tokens, padding.token);
  change(encoding.offsets, std::pair<std::int64_t, std::int64_t>{0, 0});
  change(encoding.special, true);
  change(encoding.attention_mask, false);
}

void cut(Encoding& encoding, std::int64_t length, Side side) {
  const auto size = static_cast<std::int64_t>(encoding.size());
  if (size <= length) {
    return;
  }
  for_each_list(encoding, {}, [&](auto& list, const auto& value) {
    if (side == Side::left) {
      list.erase(list.begin(), list.begin() + (size - length));
    } else {
      list.resize(static_cast<std::size_t>(length), value);
    }
  });
}

}  // namespace

void truncate(std::span<Encoding> encodings, const Truncation& truncation, std::int64_t added) {
  const std::int64_t most = truncation.max_length - added;
  check(most >= 0, "truncation to {} tokens leaves no room for the {} special tokens", truncation.max_length, added);
  std::int64_t total = 0;
  for (const Encoding& encoding : encodings) {
    total += static_cast<std::int64_t>(encoding.size());
  }
  if (total <= most) {
    return;
  }
  if (most == 0) {
    for (Encoding& encoding : encodings) {
      cut(encoding, 0, truncation.side);
    }
    return;
  }
  using enum Truncation::Strategy;
  if (truncation.strategy != longest_first) {
    const std::size_t which = truncation.strategy == only_first ? 0 : 1;
    check(which < encodings.size(), "only a second text may be cut to {} tokens, but there is none",
          truncation.max_length);
    const std::int64_t rest = static_cast<std::int64_t>(encodings[which].size()) - (total - most);
    check(rest > 0, "the {} text is too short to be cut: {} tokens would remain where {} are allowed",
          which == 0 ? "first" : "second", total - static_cast<std::int64_t>(encodings[which].size()), most);
    cut(encodings[which], rest, truncation.side);
    return;
  }
  if (encodings.size() == 1) {
    cut(encodings[0], most, truncation.side);
    return;
  }
  // The longer of the two is cut down to the shorter, and if that is not enough, both to the half.
  auto shorter = static_cast<std::int64_t>(encodings[0].size());
  auto longer = static_cast<std::int64_t>(encodings[1].size());
  const bool swapped = shorter > longer;
  if (swapped) {
    std::swap(shorter, longer);
  }
  longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  cut(encodings[swapped ? 1 : 0], shorter, truncation.side);
  cut(encodings[swapped ? 0 : 1], longer, truncation.side);
}

void pad(std::span<Encoding> encodings, const Padding& padding) {
  std::int64_t length = padding.length.value_or(0);
  if (!padding.length) {
    for (const Encoding& encoding : encodings) {
      length = std::max(length, static_cast<std::int64_t>(encoding.size()));
    }
  }
  length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  for (Encoding& encoding : encodings) {
    const std::int64_t missing = length - static_cast<std::int64_t>(encoding.size());
    if (missing <= 0) {
      continue;
    }
    for_each_list(encoding, padding, [&](auto& list, const auto& value) {
      list.insert(padding.side == Side::left ? list.begin() : list.end(), static_cast<std::size_t>(missing), value);
    });
  }
}

}  // namespace vitrail::text
