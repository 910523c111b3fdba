/// \file
/// Tables of text, RFC 4180.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::io {

/// A row of a table, and the line on which it begins (from 1).
struct CsvRow {
  std::size_t line = 0;
  std::vector<std::string> fields;
};

/// Parses fields between commas, in double quotes if they contain commas, line breaks or (doubled) quotes. Blank lines
/// are passed over. Throws Error, naming `source` and the line, if a quote is never closed, or if a row has more fields
/// than the first one.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& source);

/// The column of the table `source` whose name in the header, in whatever case, is the first of `names` that any column
/// has. Throws Error if two columns have it.
std::optional<std::size_t> column_named(const CsvRow& header, std::span<const std::string_view> names,
                                        const std::string& source);
std::optional<std::size_t> column_named(const CsvRow& header, std::initializer_list<std::string_view> names,
                                        const std::string& source);

}  // namespace vitrail::io
