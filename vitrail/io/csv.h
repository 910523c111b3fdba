/// \file
/// Tables of text, RFC 4180.
#pragma once

#include <cstddef>
#include <filesystem>
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

/// Parses fields between commas, or another separator, in double quotes if they contain separators, line breaks or
/// (doubled) quotes. Blank lines are passed over. Throws Error, naming `source` and the line, if a quote is never
/// closed, or if a row has more fields than the first one.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& source, char separator = ',');

/// Whether a file is a table by its name: `.csv` or `.tsv`, in whatever case.
bool is_table_name(const std::filesystem::path& file);
/// Whether there is a file that is a table by its name.
bool is_table_file(const std::filesystem::path& file);
/// Parses what stands in a file, whose fields are separated by tabs in a `.tsv`, and in any other by commas, or by
/// semicolons if the first line has these and no comma, as spreadsheets write where a comma is the decimal point.
/// Throws Error as parse_csv() does, and read_table() as read_text() too.
std::vector<CsvRow> parse_table(std::string_view text, const std::filesystem::path& file);
std::vector<CsvRow> read_table(const std::filesystem::path& file);

/// The column of the table `source` whose name in the header, in whatever case, is the first of `names` that any column
/// has. Throws Error if two columns have it.
std::optional<std::size_t> column_named(const CsvRow& header, std::span<const std::string_view> names,
                                        const std::string& source);
std::optional<std::size_t> column_named(const CsvRow& header, std::initializer_list<std::string_view> names,
                                        const std::string& source);

}  // namespace vitrail::io
