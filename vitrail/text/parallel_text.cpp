#include "vitrail/text/parallel_text.h"

#include <cstddef>
#include <utility>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

std::vector<std::string> lines_of_file(const std::string& file) {
  const std::string text = io::read_text(file);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    const std::size_t bad = find_invalid_utf8(line);
    check(bad == std::string::npos, "{}: line {} is not UTF-8: byte {} of it is {:#04x}", file, lines.size() + 1,
          bad + 1, static_cast<unsigned char>(line[std::min(bad, line.size() - 1)]));
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  check(!lines.empty(), "{}: the text is empty", file);
  return lines;
}

bool is_blank_line(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

}  // namespace

ParallelText read_parallel_text(const std::string& source, const std::string& target) {
  std::vector<std::string> sources = lines_of_file(source);
  std::vector<std::string> targets = lines_of_file(target);
  const bool longer = sources.size() > targets.size();
  check(sources.size() == targets.size(), "'{}' has {}, but '{}' has {}: line {} of '{}' has no counterpart", source,
        io::counted(std::ssize(sources), "lines"), target, targets.size(), std::min(sources.size(), targets.size()) + 1,
        longer ? source : target);
  ParallelText result;
  for (std::size_t i = 0; i < sources.size(); ++i) {
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
