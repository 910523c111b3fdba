/// \file
/// Texts and their translations, line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::text {

/// Lines and their translations.
struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::int64_t left_out = 0;  ///< pairs of which one line is empty, which are not among these
};

/// Reads two files that correspond line by line. Throws Error, naming the file, if one cannot be read, is empty or is
/// not UTF-8 (with line and column), or if they have not equally many lines. With `skipped`, pairs with a line that is
/// not UTF-8 are left out and counted there instead.
ParallelText read_parallel_text(const std::string& source, const std::string& target, std::int64_t* skipped = nullptr);
/// Throws Error, naming both files, their numbers of lines and the first line that has no counterpart, unless they have
/// equally many.
void check_equal_lines(const std::string& source, std::size_t source_lines, const std::string& target,
                       std::size_t target_lines);

}  // namespace vitrail::text
