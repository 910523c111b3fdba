#include "vitrail/text/parallel_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

std::vector<std::string> lines_of_file(const std::string& file) {
  const std::string text = io::read_text(file);
  std::vector<std::string> lines = io::lines_of(std::string_view(text));
  check(!lines.empty(), "{}: the text is empty", file);
  return lines;
}

bool is_utf8(const std::string& line) { return find_invalid_utf8(line) == std::string::npos; }

bool is_blank_line(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

}  // namespace

void check_equal_lines(const std::string& source, std::size_t source_lines, const std::string& target,
                       std::size_t target_lines) {
  check(source_lines == target_lines, "'{}' has {}, but '{}' has {}: line {} of '{}' has no counterpart", source,
        io::counted(static_cast<std::int64_t>(source_lines), "lines"), target, target_lines,
        std::min(source_lines, target_lines) + 1, source_lines > target_lines ? source : target);
}

ParallelText read_parallel_text(const std::string& source, const std::string& target, std::int64_t* skipped) {
  std::vector<std::string> sources = lines_of_file(source);
  std::vector<std::string> targets = lines_of_file(target);
  check_equal_lines(source, sources.size(), target, targets.size());
  ParallelText result;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (skipped != nullptr && !(is_utf8(sources[i]) && is_utf8(targets[i]))) {
      ++*skipped;
      continue;
    }
    check_line(sources[i], source, i + 1);
    check_line(targets[i], target, i + 1);
    if (is_blank_line(sources[i]) || is_blank_line(targets[i])) {
      ++result.left_out;
      continue;
    }
    result.source.push_back(std::move(sources[i]));
    result.target.push_back(std::move(targets[i]));
  }
  check(!result.source.empty(), "'{}' and '{}' have no pair of lines that are not empty", source, target);
  return result;
}

}  // namespace vitrail::text
