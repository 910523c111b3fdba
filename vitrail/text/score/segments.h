/// \file
/// Texts in which a line is a segment, as scores of translations take them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vitrail::text {

/// The segments of a text, in code points.
using Segments = std::vector<std::u32string>;

/// The lines of `text`, which end at "\n" and nothing else, without the white space at their ends. Throws Error, naming
/// `source`, line and column (in bytes), where the text is not UTF-8.
Segments parse_segments(std::string_view text, const std::string& source);

/// Throws Error, with both counts and the first line that only one of them has, unless there are as many hypotheses as
/// references.
void check_parallel(const Segments& hypotheses, const std::string& hypotheses_source, const Segments& references,
                    const std::string& references_source);

/// The words between white space, which is what Python's `str.split` takes for it.
std::vector<std::u32string_view> words_of(std::u32string_view line);
bool is_white_space(char32_t c);

/// The line in lower case, by Unicode's full mapping and without a language, as Python's `str.lower`.
std::u32string lowercased(const std::u32string& line);

/// How often each n-gram is there. They refer to the text that was counted.
using NgramCounts = std::unordered_map<std::u32string_view, std::int64_t>;

/// Counts the sequences of `n` code points of `line`.
void count_character_ngrams(std::u32string_view line, int n, NgramCounts& counts);
/// Counts the sequences of `n` words of `line`, whose words have one space between them.
void count_word_ngrams(std::u32string_view line, int n, NgramCounts& counts);

/// The words with one space between them.
std::u32string with_single_spaces(const std::vector<std::u32string_view>& words);

}  // namespace vitrail::text
