/// \file
/// Texts and their translations, line by line.
#pragma once

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
/// not UTF-8 (with line and column), or if they have not equally many lines.
ParallelText read_parallel_text(const std::string& source, const std::string& target);

}  // namespace vitrail::text
