#include "vitrail/text/parts/charsmap.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/graphemes.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

constexpr std::size_t longest_cluster = 5;  // in bytes; a longer one is not looked up as a whole

// The fields of a unit of Darts' double array.
constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr std::uint32_t value(std::uint32_t unit) { return unit & ((1U << 31) - 1); }
constexpr std::uint32_t label(std::uint32_t unit) { return unit & (1U << 31 | 0xFF); }
constexpr std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  std::uint32_t size = 0;
  check(bytes.size() > sizeof(size), "the charsmap has {} bytes and no trie", bytes.size());
  std::memcpy(&size, bytes.data(), sizeof(size));
  check(size >= sizeof(std::uint32_t) && size % sizeof(std::uint32_t) == 0 && size < bytes.size() - sizeof(size),
        "the charsmap of {} bytes cannot have a trie of {}", bytes.size(), size);
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof(size), size);
  replacements_ = bytes.substr(sizeof(size) + size);
  check_utf8(replacements_, "the text of the charsmap");
  check(replacements_.back() == '\0', "the last replacement of the charsmap has no end");
  check_trie();
}

// Whoever follows a string through the trie, we or sentencepiece, must find each unit and each replacement there.
void Charsmap::check_trie() const {
  std::vector<bool> seen(units_.size());
  std::vector<std::size_t> open = {offset(units_[0])};
  while (!open.empty()) {
    const std::size_t base = open.back();
    open.pop_back();
    check((base | 0xFF) < units_.size(), "the trie of the charsmap leads to unit {} of {}", base | 0xFF, units_.size());
    if (seen[base]) {
      continue;
    }
    seen[base] = true;
    for (std::uint32_t byte = 1; byte <= 0xFF; ++byte) {
      const std::size_t child = base ^ byte;
      const std::uint32_t unit = units_[child];
      if (label(unit) != byte) {
        continue;
      }
      const std::size_t next = child ^ offset(unit);
      check(next < units_.size(), "the trie of the charsmap leads to unit {} of {}", next, units_.size());
      check(!has_leaf(unit) || value(units_[next]) < replacements_.size(),
            "the charsmap has a replacement at byte {} of {}", value(units_[next]), replacements_.size());
      check(!has_leaf(unit) || (static_cast<unsigned char>(replacements_[value(units_[next])]) & 0xC0) != 0x80,
            "the charsmap has a replacement that begins within a character, at byte {}", value(units_[next]));
      open.push_back(next);
    }
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  std::size_t node = offset(units_[0]);
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    node ^= byte;
    const std::uint32_t unit = units_[node];
    if (byte == 0 || label(unit) != byte) {
      return std::nullopt;
    }
    node ^= offset(unit);
    if (has_leaf(unit)) {
      return std::string_view(replacements_.c_str() + value(units_[node]));
    }
  }
  return std::nullopt;
}

void Charsmap::normalize(NormalizedString& string) const {
  const std::string_view text = string.text();
  std::vector<Change> changes;
  bool modified = false;
  // The code points of the replacement take the places of the old ones: those too many are new, those too few removed.
  const auto replace = [&](std::string_view old, std::string_view replacement) {
    modified = true;
    const auto old_count = static_cast<std::int32_t>(count_code_points(old));
    const auto new_count = static_cast<std::int32_t>(count_code_points(replacement));
    for_each_code_point(replacement, [&](char32_t c, std::size_t) { changes.push_back({c, 0}); });
    for (std::int32_t i = 0; i < new_count - old_count; ++i) {
      changes[changes.size() - 1 - static_cast<std::size_t>(i)].change = 1;
    }
    if (new_count < old_count && !changes.empty()) {
      changes.back().change += new_count - old_count;
    }
  };
  std::size_t begin = 0;
  for (const std::size_t end : grapheme_ends(text)) {
    const std::string_view cluster = text.substr(begin, end - begin);
    begin = end;
    if (cluster.size() <= longest_cluster) {
      if (const auto replacement = find(cluster)) {
        replace(cluster, *replacement);
        continue;
      }
    }
    for_each_code_point(cluster, [&](char32_t c, std::size_t at) {
      const std::string_view part = cluster.substr(at, utf8_length(c));
      if (const auto replacement = find(part)) {
        replace(part, *replacement);
      } else {
        changes.push_back({c, 0});
      }
    });
  }
  if (modified) {
    string.transform(changes);
  }
}

}  // namespace vitrail::text
