/// \file
/// Suggestions ("did you mean …?") for names that do not exist.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

/// The smallest number of insertions, deletions, replacements and swaps of neighbouring letters that turns `a` into
/// `b`, ignoring case (Damerau-Levenshtein distance in its restricted form, "optimal string alignment").
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidates that `word` may have been meant to be, nearest first, at most `most` of them. A candidate is near if
/// there is at most one edit (as in edit_distance()) for every three letters, or if it begins with `word` or `word`
/// with it.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t most = 3);

/// Formats the result of nearest() as the end of a sentence: " (did you mean 'a', 'b' or 'c'?)", or "" if nothing is
/// near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::size_t most = 3);

/// Quotes `words` and joins them: "'a'", "'a' or 'b'", "'a', 'b' or 'c'", with `joint` in front of the last.
std::string quoted_list(const std::vector<std::string>& words, std::string_view joint = "or");
/// The first five words, and how many there are besides: "cat, dog, fox, owl, rat and 3 more".
std::string some_of(const std::vector<std::string>& words);
/// The first `most` words, each on an indented line, and on a further one how many there are besides.
std::string some_lines_of(std::span<const std::string> words, std::size_t most = 20);

}  // namespace vitrail::io
