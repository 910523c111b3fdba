#include "vitrail/text/tables.h"

#include <cstddef>
#include <span>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

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

std::optional<std::string> part_of_object(const nlohmann::json& object, const std::string& source, std::size_t line) {
  io::CsvRow names{line, {}};
  io::CsvRow values{line, {}};
  for (const auto& [key, value] : object.items()) {
    check(key != "split" || !value.is_structured(), "{}: line {}: its 'split' is no text", source, line);
    const std::string cell = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
    const bool is_another_is = key.starts_with("is_") && !cell.empty() && !io::says_truth(cell);
    if (!value.is_structured() && !is_another_is) {
      names.fields.push_back(key);
      values.fields.push_back(cell);
    }
  }
  const auto column = io::part_column(std::span(&names, 1), source, {"split"});
  return column ? std::optional(column->part_of(values, names, source)) : std::nullopt;
}

}  // namespace vitrail::text
