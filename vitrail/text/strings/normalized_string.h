/// \file
/// A text that is being normalized, and where in the original each of its bytes comes from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {

/// A range of bytes, [begin, end).
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const Span&) const = default;
};

/// One code point of a transformed text. `change` says what it is: 0, it replaces the next code point of the old text;
/// 1, it is new, and comes from where the one before it does; -n, it replaces one, and the n after that are removed.
struct Change {
  char32_t c;
  std::int32_t change;
};

/// A range of a text in which a pattern was found, or one between two of these. Ranges follow each other without gaps.
struct Match {
  Span range;
  bool matches;
};

/// What becomes of the places where a text is split: 'the-final--countdown' at each '-' gives
enum class SplitBehavior {
  removed,               ///< the, final, countdown
  isolated,              ///< the, -, final, -, -, countdown
  merged_with_previous,  ///< the-, final-, -, countdown
  merged_with_next,      ///< the, -final, -, -countdown
  contiguous,            ///< the, -, final, --, countdown
};

/// The most bytes that may be made of `original` bytes. No normal form or alphabet makes more than eleven of one; rules
/// in a file could go on doubling a text.
constexpr std::size_t most_bytes_of(std::size_t original) { return (std::size_t{1} << 20) + 64 * original; }

/// A text, and for each of its bytes the bytes of the original from which it comes. All operations, with what they do
/// to the alignment, are those of `NormalizedString` in Hugging Face's tokenizers (tokenizer/normalizer.rs), so that
/// offsets agree. While the text is as the original it borrows it, and has no list of alignments.
class NormalizedString {
 public:
  /// `original` is valid UTF-8 of less than 4 GiB, and must outlive this; `shift` is where it begins in the whole text.
  explicit NormalizedString(std::string_view original, std::uint32_t shift = 0);

  std::string_view text() const { return as_original_ ? original_ : std::string_view(changed_); }
  bool empty() const { return text().empty(); }
  /// Where the part of the original that this stands for begins.
  std::uint32_t begin() const { return shift_; }
  /// The bytes of the original from which [begin, end) of the text comes, or nothing if that is not a part of the text.
  std::optional<Span> original_range(Span range) const;

  /// The part [begin, end) of the text, which must be between code points.
  NormalizedString slice(Span range) const;
  /// The parts into which `matches`, which cover the text, split it.
  std::vector<NormalizedString> split(std::span<const Match> matches, SplitBehavior behavior) const;

  /// Replaces the text by the code points of `changes`; `removed` of the old ones are left out before the first.
  void transform(std::span<const Change> changes, std::size_t removed = 0);
  /// Leaves out code points for which `keep` is false.
  void filter(const std::function<bool(char32_t)>& keep);
  /// Puts `map(c)` in the place of each code point c.
  void map(const std::function<char32_t(char32_t)>& map);
  void lowercase();
  /// Puts `prefix` before the text unless that is empty.
  void prepend(std::string_view prefix);
  /// Puts `content` in the place of each match.
  void replace(std::span<const Match> matches, std::string_view content);
  /// Leaves out white space at the ends.
  void strip(bool left, bool right);

 private:
  Span alignment(std::size_t at) const;
  void own();
  void check_growth(std::size_t bytes) const;
  void transform_range(Span range, std::span<const Change> changes, std::size_t removed);

  std::string_view original_;  // of this part
  std::uint32_t shift_;
  bool as_original_ = true;
  std::string changed_;
  std::vector<Span> alignments_;  // one for each byte of changed_, in bytes of the whole text
};

/// The ranges of `text` with a code point for which `test` is true, and those between.
template <class Test>
std::vector<Match> find_code_points(std::string_view text, const Test& test) {
  std::vector<Match> matches;
  std::uint32_t last = 0;
  for_each_code_point(text, [&](char32_t c, std::size_t at) {
    if (!test(c)) {
      return;
    }
    const auto begin = static_cast<std::uint32_t>(at);
    if (last < begin) {
      matches.push_back({{last, begin}, false});
    }
    last = begin + utf8_length(text[at]);
    matches.push_back({{begin, last}, true});
  });
  if (last < text.size()) {
    matches.push_back({{last, static_cast<std::uint32_t>(text.size())}, false});
  }
  return matches;
}

}  // namespace vitrail::text
