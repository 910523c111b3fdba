// The words of captions, as Stanford's PTBTokenizer of 2014 cuts plain ones.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "vitrail/text/score/captions.h"
#include "vitrail/text/score/segments.h"

namespace vitrail::text {
namespace {

using namespace std::string_view_literals;

// Words that keep the full stop behind them, beside letters and such as have one inside.
constexpr std::array abbreviations = {U"mr"sv, U"mrs"sv, U"ms"sv,  U"dr"sv, U"prof"sv, U"st"sv,  U"jr"sv, U"sr"sv,
                                      U"co"sv, U"inc"sv, U"ltd"sv, U"vs"sv, U"etc"sv,  U"ave"sv, U"mt"sv};
constexpr std::array contractions = {U"n't"sv, U"'s"sv, U"'m"sv, U"'d"sv, U"'re"sv, U"'ve"sv, U"'ll"sv};
// Two words that people write as one, and the length of the first.
struct Joined {
  std::u32string_view word;
  std::size_t first;
};
constexpr std::array<Joined, 6> joined_words = {
    {{U"cannot", 3}, {U"gonna", 3}, {U"gotta", 3}, {U"wanna", 3}, {U"gimme", 3}, {U"lemme", 3}}};

bool is_ascii_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_any_letter(char32_t c) { return u_isalpha(static_cast<UChar32>(c)) != 0; }

// The line in which other quotation marks, dashes and dots stand as ASCII's.
std::u32string in_plain_signs(const std::u32string& line) {
  std::u32string result;
  for (const char32_t c : line) {
    switch (c) {
      case U'‘':
      case U'’':
        result += U'\'';
        break;
      case U'“':
      case U'”':
      case U'«':
      case U'»':
      case U'`':
        result += U'"';
        break;
      case U'–':
      case U'—':
        result += U"--";
        break;
      case U'…':
        result += U"...";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// The line with spaces around the signs that are not parts of words, and without those that are left out anyway.
std::u32string with_signs_apart(const std::u32string& line) {
  constexpr std::u32string_view brackets = U"()[]{}";
  constexpr std::array<std::u32string_view, 6> names = {U"lrb", U"rrb", U"lsb", U"rsb", U"lcb", U"rcb"};
  std::u32string result;
  const auto at = [&](std::size_t i) { return i < line.size() ? line[i] : U' '; };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char32_t c = line[i];
    const char32_t before = i > 0 ? line[i - 1] : U' ';
    const bool twice = c == at(i + 1) || c == before;
    if (c == U'"' || c == U';' || (twice && (c == U'-' || c == U'.' || c == U'\''))) {
      result += U' ';
    } else if (c == U',' || c == U':') {
      result += is_ascii_digit(before) && is_ascii_digit(at(i + 1)) ? c : U' ';
    } else if (c == U'!' || c == U'?') {  // several in a row are a word
      const std::size_t end = std::min(line.find_first_not_of(U"!?", i), line.size());
      result.append(U" ").append(line, i, end - i > 1 ? end - i : 0).append(U" ");
      i = end - 1;
    } else if (const std::size_t bracket = brackets.find(c); bracket != std::u32string_view::npos) {
      result.append(U" -").append(names.at(bracket)).append(U"- ");
    } else if (std::u32string_view(U"$%&*+=~^|\\<>").find(c) != std::u32string_view::npos ||
               (c == U'#' && !is_any_letter(at(i + 1))) ||
               (c == U'/' && (is_white_space(before) || is_white_space(at(i + 1))))) {
      result.append(U" ").append(1, c).append(U" ");
    } else {
      result += c;
    }
  }
  return result;
}

bool is_bracket(std::u32string_view word) { return word.size() == 5 && word.front() == U'-' && word.back() == U'-'; }

// Appends a word and a space.
void append_word(std::u32string& line, std::u32string_view word) {
  if (!word.empty()) {
    line.append(word).append(U" ");
  }
}

// Appends what a word between white space consists of.
void append_parts(std::u32string& line, std::u32string_view word) {
  if (is_bracket(word) || std::ranges::find(contractions, word) != contractions.end()) {
    append_word(line, word);
    return;
  }
  const std::size_t first = word.find_first_not_of(U"-'");
  word.remove_prefix(std::min(first, word.size()));
  while (!word.empty() && std::u32string_view(U"-'.").find(word.back()) != std::u32string_view::npos) {
    const std::u32string_view stem = word.substr(0, word.size() - 1);
    const bool abbreviates = word.back() == U'.' && !stem.empty() && is_any_letter(stem.back()) &&
                             (stem.size() == 1 || stem.find(U'.') != std::u32string_view::npos ||
                              std::ranges::find(abbreviations, stem) != abbreviations.end());
    if (abbreviates) {
      break;
    }
    word = stem;
  }
  if (const auto joined = std::ranges::find(joined_words, word, &Joined::word); joined != joined_words.end()) {
    append_word(line, word.substr(0, joined->first));
    append_word(line, word.substr(joined->first));
    return;
  }
  for (const std::u32string_view ending : contractions) {
    if (word.ends_with(ending)) {
      append_word(line, word.substr(0, word.size() - ending.size()));
      append_word(line, ending);
      return;
    }
  }
  append_word(line, word);
}

}  // namespace

std::string caption_tokenized(std::string_view caption) {
  std::u32string line;
  for (const std::u32string& segment : parse_segments(caption, "a caption")) {
    const std::u32string apart = with_signs_apart(in_plain_signs(lowercased(segment)));
    for (const std::u32string_view word : words_of(apart)) {
      append_parts(line, word);
    }
  }
  std::string result;
  icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(line.data()), static_cast<std::int32_t>(line.size()))
      .trim()
      .toUTF8String(result);
  return result;
}

}  // namespace vitrail::text
