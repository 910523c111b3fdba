#include "vitrail/text/strings/normalized_string.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

constexpr char32_t capital_i_with_dot = 0x130;
constexpr char32_t combining_dot_above = 0x307;

// The ranges that are kept, of those that a pattern has found.
std::vector<Span> kept_ranges(std::span<const Match> matches, SplitBehavior behavior) {
  std::vector<Span> kept;
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  bool previous = false;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const auto& [range, is_match] = matches[backwards ? matches.size() - 1 - i : i];
    switch (behavior) {
      case SplitBehavior::removed:
        if (!is_match) {
          kept.push_back(range);
        }
        continue;
      case SplitBehavior::isolated:
        kept.push_back(range);
        continue;
      case SplitBehavior::contiguous:
      case SplitBehavior::merged_with_previous:
      case SplitBehavior::merged_with_next: {
        const bool joins = behavior == SplitBehavior::contiguous ? is_match == previous : is_match && !previous;
        previous = is_match;
        if (!joins || kept.empty()) {
          kept.push_back(range);
        } else if (backwards) {
          kept.back().begin = range.begin;
        } else {
          kept.back().end = range.end;
        }
      }
    }
  }
  if (backwards) {
    std::ranges::reverse(kept);
  }
  return kept;
}

}  // namespace

NormalizedString::NormalizedString(std::string_view original, std::uint32_t shift)
    : original_(original), shift_(shift) {
  check(original.size() < std::numeric_limits<std::uint32_t>::max(), "a text of {} bytes is too long to be encoded",
        original.size());
}

Span NormalizedString::alignment(std::size_t at) const {
  if (!as_original_) {
    return alignments_[at];
  }
  while ((static_cast<unsigned char>(original_[at]) & 0xC0) == 0x80) {
    --at;
  }
  const auto begin = shift_ + static_cast<std::uint32_t>(at);
  return {begin, begin + utf8_length(original_[at])};
}

std::optional<Span> NormalizedString::original_range(Span range) const {
  if (range.begin == range.end) {
    return Span{shift_ + range.begin, shift_ + range.end};
  }
  if (range.begin > range.end || range.end > text().size()) {
    return std::nullopt;
  }
  return Span{alignment(range.begin).begin, alignment(range.end - 1).end};
}

NormalizedString NormalizedString::slice(Span range) const {
  if (as_original_ || range.begin == range.end) {
    const auto size = static_cast<std::uint32_t>(original_.size());
    const Span part{std::min(range.begin, size), std::min(range.end, size)};
    return NormalizedString(original_.substr(part.begin, part.end - part.begin), shift_ + range.begin);
  }
  const Span from{alignments_[range.begin].begin, alignments_[range.end - 1].end};
  NormalizedString part(original_.substr(from.begin - shift_, std::max(from.end, from.begin) - from.begin), from.begin);
  part.as_original_ = false;
  part.changed_ = changed_.substr(range.begin, range.end - range.begin);
  part.alignments_.assign(alignments_.begin() + range.begin, alignments_.begin() + range.end);
  return part;
}

std::vector<NormalizedString> NormalizedString::split(std::span<const Match> matches, SplitBehavior behavior) const {
  std::vector<NormalizedString> parts;
  for (const Span& range : kept_ranges(matches, behavior)) {
    if (range.begin < range.end) {
      parts.push_back(slice(range));
    }
  }
  return parts;
}

void NormalizedString::own() {
  if (!as_original_) {
    return;
  }
  alignments_.reserve(original_.size());
  for (std::size_t at = 0; at < original_.size();) {
    const Span span = alignment(at);
    alignments_.insert(alignments_.end(), span.end - span.begin, span);
    at += span.end - span.begin;
  }
  changed_ = original_;
  as_original_ = false;
}

void NormalizedString::check_growth(std::size_t bytes) const {
  const std::size_t most = most_bytes_of(original_.size());
  check(bytes <= most, "the rules of the tokenizer make {} bytes of {}: {} are allowed", bytes, original_.size(), most);
}

void NormalizedString::transform_range(Span range, std::span<const Change> changes, std::size_t removed) {
  own();
  const std::string_view replaced = std::string_view(changed_).substr(range.begin, range.end - range.begin);
  std::size_t cursor = 0;
  const auto skip = [&](std::size_t count) {
    const std::size_t from = cursor;
    for (; count > 0 && cursor < replaced.size(); --count) {
      cursor += utf8_length(replaced[cursor]);
    }
    return cursor - from;
  };
  std::size_t offset = range.begin + skip(removed);
  std::string text;
  std::vector<Span> alignments;
  text.reserve(replaced.size());
  alignments.reserve(replaced.size());
  for (const auto& [c, change] : changes) {
    Span from{shift_, shift_};
    if (change > 0) {
      from = offset == 0 ? from : alignments_[offset - 1];
    } else {
      from = offset < alignments_.size() ? alignments_[offset] : alignments_.empty() ? from : alignments_.back();
      offset += skip(static_cast<std::size_t>(1 - change));
    }
    append_utf8(text, c);
    alignments.insert(alignments.end(), utf8_length(c), from);
  }
  if (range.begin == 0 && range.end == changed_.size()) {
    changed_ = std::move(text);
    alignments_ = std::move(alignments);
    check_growth(changed_.size());
    return;
  }
  changed_.replace(range.begin, range.end - range.begin, text);
  alignments_.erase(alignments_.begin() + range.begin, alignments_.begin() + range.end);
  alignments_.insert(alignments_.begin() + range.begin, alignments.begin(), alignments.end());
  check_growth(changed_.size());
}

void NormalizedString::transform(std::span<const Change> changes, std::size_t removed) {
  Span range{0, static_cast<std::uint32_t>(text().size())};
  if (original_.empty()) {
    range.end = 0;
  } else if (text().empty()) {
    return;
  } else if (!as_original_) {
    // What comes from nothing at the beginning is outside of the range that the original covers.
    const auto first = std::ranges::find_if(alignments_, [](const Span& span) { return span.begin != span.end; });
    range.begin = static_cast<std::uint32_t>(first - alignments_.begin());
  }
  transform_range(range, changes, removed);
}

void NormalizedString::filter(const std::function<bool(char32_t)>& keep) {
  std::vector<Change> changes;
  std::size_t leading = 0;
  std::int32_t removed = 0;
  for_each_code_point(text(), [&](char32_t c, std::size_t) {
    if (!keep(c)) {
      ++removed;
      return;
    }
    if (changes.empty()) {
      leading = static_cast<std::size_t>(removed);
    } else {
      changes.back().change = -removed;
    }
    changes.push_back({c, 0});
    removed = 0;
  });
  if (!changes.empty()) {
    changes.back().change = -removed;
  } else {
    leading = static_cast<std::size_t>(removed);
  }
  transform(changes, leading);
}

void NormalizedString::map(const std::function<char32_t(char32_t)>& map) {
  std::vector<Change> changes;
  for_each_code_point(text(), [&](char32_t c, std::size_t) { changes.push_back({map(c), 0}); });
  transform(changes);
}

void NormalizedString::lowercase() {
  std::vector<Change> changes;
  for_each_code_point(text(), [&](char32_t c, std::size_t) {
    if (c == capital_i_with_dot) {  // the one code point whose lower case has two, whatever the language
      changes.push_back({U'i', 0});
      changes.push_back({combining_dot_above, 1});
    } else {
      changes.push_back({text::lowercase(c), 0});
    }
  });
  transform(changes);
}

void NormalizedString::prepend(std::string_view prefix) {
  if (text().empty()) {
    return;
  }
  const CodePoint first = code_point_at(text(), 0);
  std::vector<Change> changes;
  for_each_code_point(prefix, [&](char32_t c, std::size_t at) { changes.push_back({c, at == 0 ? 0 : 1}); });
  changes.push_back({first.value, 1});
  transform_range({0, first.bytes}, changes, 0);
}

void NormalizedString::replace(std::span<const Match> matches, std::string_view content) {
  if (std::ranges::none_of(matches, &Match::matches)) {
    return;
  }
  own();
  std::string text;
  std::vector<Span> alignments;
  std::size_t last = 0;
  const auto keep = [&](std::size_t end) {
    text.append(changed_, last, end - last);
    alignments.insert(alignments.end(), alignments_.begin() + static_cast<std::ptrdiff_t>(last),
                      alignments_.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const auto& [range, is_match] : matches) {
    if (is_match) {
      keep(range.begin);
      text += content;
      check_growth(text.size());
      alignments.insert(alignments.end(), content.size(),
                        range.end == 0 ? Span{shift_, shift_} : alignments_[range.end - 1]);
      last = range.end;
    }
  }
  keep(changed_.size());
  changed_ = std::move(text);
  alignments_ = std::move(alignments);
}

void NormalizedString::strip(bool left, bool right) {
  const std::string_view old = text();
  std::vector<Change> changes;
  std::size_t leading = 0;
  std::size_t kept = 0;
  for_each_code_point(old, [&](char32_t c, std::size_t) {
    const bool space = is_whitespace(c);
    if (left && space && changes.empty()) {
      ++leading;
      return;
    }
    changes.push_back({c, 0});
    kept = space ? kept : changes.size();
  });
  if (right) {
    changes.resize(kept);
  }
  if (leading > 0 || (right && changes.size() < count_code_points(old) - leading)) {
    transform(changes, leading);
  }
}

}  // namespace vitrail::text
