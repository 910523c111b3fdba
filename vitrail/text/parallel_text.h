/// \file
/// Texts and their translations, line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// Lines and their translations.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::vector<std::string> split = {};  ///< the part that each is of, in lower case, if a table says it; else empty
  std::int64_t left_out = 0;            ///< pairs of which one line is empty, which are not among these
};

/// What may hold texts and their translations in the place of two files, as messages say it.
inline constexpr std::string_view pairs_or_table = "line by line, or a table of both: .tsv, .csv or .jsonl";
/// Whether a file is by its name a table that holds texts and their translations both: `.tsv`, `.csv`, `.jsonl`.
bool is_table_of_pairs(const std::string& file);
/// Whether a table names the columns or fields of texts and their translations, by its first line, and none of texts
/// with labels; false for a file that cannot be read.
bool names_pairs(const std::string& file);
/// Whether two files are named, or the table alone that holds both.
bool are_pairs_named(const std::string& source, const std::string& target);
/// The files of pairs for a message: "'a.de' and 'a.en'", or the table.
std::string shown_pairs(const std::string& source, const std::string& target);

/// Reads two files that correspond line by line, or, where `target` is empty, the table `source`: the columns `src` and
/// `tgt` (or `source` and `target`) if its first line names them, or else the first two of a `.tsv`, or the two of a
/// `.csv` behind their names; these fields of the objects of a `.jsonl`, or the first two of Hugging Face's
/// `{"translation": {"de": …, "en": …}}`; the part of each by a further one called `split`. Throws Error, naming the
/// file, if one cannot be read, is empty or is not UTF-8 (with line and column), if two have not equally many lines, or
/// if a line of a table has no pair. With `skipped`, pairs with a line that is not UTF-8 are left out and counted there
/// instead.
ParallelText read_parallel_text(const std::string& source, const std::string& target, std::int64_t* skipped = nullptr);
/// The same of the content of a table whose name ends so (".tsv"); errors call it `source`.
ParallelText parse_pairs(std::string_view content, std::string_view ending, const std::string& source);
/// Throws Error, naming both files, their numbers of lines and the first line that has no counterpart, unless they have
/// equally many.
void check_equal_lines(const std::string& source, std::size_t source_lines, const std::string& target,
                       std::size_t target_lines);

}  // namespace vitrail::text
