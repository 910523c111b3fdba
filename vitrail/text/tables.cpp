#include "vitrail/text/tables.h"

#include <cstddef>

#include "vitrail/io/file.h"

namespace vitrail::text {
namespace {

std::vector<std::string> split_at_tabs(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) {
      return fields;
    }
    begin = end + 1;
  }
}

}  // namespace

std::vector<io::CsvRow> rows_of_texts(std::string_view content, std::string_view ending, const std::string& source) {
  if (ending == ".csv") {
    return io::parse_table(content, source);
  }
  std::vector<io::CsvRow> rows;
  std::size_t number = 0;
  for (const std::string& line : io::lines_of(content)) {
    ++number;
    if (!line.empty()) {
      rows.push_back({number, split_at_tabs(line)});
    }
  }
  return rows;
}

}  // namespace vitrail::text
