/// \file
/// Tables of text, RFC 4180, and what their columns say.
#pragma once

#include <algorithm>
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

/// The words of a part's name in lower case, without spaces around them.
std::string part_in_cell(std::string_view cell);

/// A column that names parts, or one that tells two of them apart, as fastai's `is_valid` does.
struct PartColumn {
  std::size_t column = 0;
  std::string when_true = {};  ///< the part of rows with True, 1 or yes; empty: the column names parts
  std::string when_false = {};
  std::optional<std::size_t> test = std::nullopt;  ///< beside it, the column that tells those to test on

  std::size_t last() const { return test ? std::max(column, *test) : column; }  ///< the last column that is needed
  /// The part that a row is of; "" if its field is empty. Throws Error, naming `source` and the line, if the field is
  /// neither true nor false.
  std::string part_of(const CsvRow& row, const std::string& source) const;
};

/// The first column of these `names` of a table with this header, or else `is_valid`, `is_val` or `is_train` (with
/// `is_test` beside it) or `is_test`. Throws Error if two columns have that name.
std::optional<PartColumn> part_column(const CsvRow& header, const std::string& source,
                                      std::initializer_list<std::string_view> names = {"split", "set", "subset"});

}  // namespace vitrail::io
