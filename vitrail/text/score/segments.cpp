#include "vitrail/text/score/segments.h"

#include <algorithm>
#include <cstddef>

#include <unicode/locid.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::text {

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Segments parse_segments(std::string_view text, const std::string& source) {
  Segments segments;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::u32string& segment = segments.emplace_back();
    for (std::size_t i = 0; i < line.size();) {
      const std::size_t begin = i;
      UChar32 c = 0;
      U8_NEXT(line.data(), i, line.size(), c);
      check(c >= 0, "{}: line {} is not UTF-8: byte {} of it is {:#04x}", source, segments.size(), begin + 1,
            static_cast<unsigned char>(line[begin]));
      segment.push_back(static_cast<char32_t>(c));
    }
    while (!segment.empty() && is_white_space(segment.back())) {
      segment.pop_back();
    }
  }
  return segments;
}

void check_parallel(const Segments& hypotheses, const std::string& hypotheses_source, const Segments& references,
                    const std::string& references_source) {
  const auto lines = [](const Segments& segments) {
    return io::counted(static_cast<std::int64_t>(segments.size()), "lines");
  };
  check(hypotheses.size() == references.size(), "'{}' has {}, but '{}' has {}: only one of them has line {}",
        hypotheses_source, lines(hypotheses), references_source, lines(references),
        std::min(hypotheses.size(), references.size()) + 1);
}

std::vector<std::u32string_view> words_of(std::u32string_view line) {
  std::vector<std::u32string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && !is_white_space(line[end])) {
      ++end;
    }
    if (end > i) {
      words.push_back(line.substr(i, end - i));
    }
    i = end + 1;
  }
  return words;
}

std::u32string with_single_spaces(const std::vector<std::u32string_view>& words) {
  std::u32string line;
  for (const std::u32string_view word : words) {
    if (!line.empty()) {
      line += U' ';
    }
    line += word;
  }
  return line;
}

std::u32string lowercased(const std::u32string& line) {
  icu::UnicodeString text = icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(line.data()),
                                                          static_cast<std::int32_t>(line.size()));
  text.toLower(icu::Locale::getRoot());
  std::u32string result;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    result.push_back(static_cast<char32_t>(text.char32At(i)));
  }
  return result;
}

void count_character_ngrams(std::u32string_view line, int n, NgramCounts& counts) {
  const auto length = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i + length <= line.size(); ++i) {
    ++counts[line.substr(i, length)];
  }
}

void count_word_ngrams(std::u32string_view line, int n, NgramCounts& counts) {
  const std::vector<std::u32string_view> words = words_of(line);
  const auto length = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i + length <= words.size(); ++i) {
    const std::u32string_view last = words[i + length - 1];
    ++counts[{words[i].data(), static_cast<std::size_t>(last.data() + last.size() - words[i].data())}];
  }
}

}  // namespace vitrail::text
