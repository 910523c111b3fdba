// "Did you mean …?" for names that do not exist.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

// The fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, case ignored
// (Damerau-Levenshtein distance in its restricted form, "optimal string alignment").
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidates near enough to be what `word` was meant to be, nearest first, at most `most`. Near: an edit for every
// three letters, or one begins with the other.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t most = 3);

// nearest() as the end of a sentence: " (did you mean 'a', 'b' or 'c'?)", or "" if nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::size_t most = 3);

// "'a'", "'a' or 'b'", "'a', 'b' or 'c'": `words` quoted, with `joint` before the last.
std::string quoted_list(const std::vector<std::string>& words, std::string_view joint = "or");

}  // namespace vitrail::io
