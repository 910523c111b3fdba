/// \file
/// Tables of text, RFC 4180, and what their columns say.
#pragma once

#include <array>
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
/// Parses what stands in a file, whose fields are separated by tabs in a `.tsv`, and in any other by the first of
/// commas, semicolons (as spreadsheets write where a comma is the decimal point) and tabs that its first line has.
/// Throws Error as parse_csv() does, and read_table() as read_text() too.
std::vector<CsvRow> parse_table(std::string_view text, const std::filesystem::path& file);
std::vector<CsvRow> read_table(const std::filesystem::path& file);

/// The column of the table `source` whose name in the header, in whatever case and between whatever spaces, is the
/// first of `names` that any column has. Throws Error if two columns have it.
std::optional<std::size_t> column_named(const CsvRow& header, std::span<const std::string_view> names,
                                        const std::string& source);
std::optional<std::size_t> column_named(const CsvRow& header, std::initializer_list<std::string_view> names,
                                        const std::string& source);

/// "takes the column 'label' and leaves 'class'", where more columns than the one that was taken have one of `names`;
/// else "".
std::string other_columns(const CsvRow& header, std::span<const std::string_view> names, std::size_t taken);

/// The words of a part's name in lower case, without spaces around them.
std::string part_in_cell(std::string_view cell);

/// Whether a cell is one of the words for True (1, yes, t …) or False.
bool says_truth(std::string_view cell);

/// What a table says of its rows' parts: a column that names them, and columns that tell one part from the others, as
/// fastai's `is_valid` does.
struct PartColumn {
  std::optional<std::size_t> named;                  ///< the column that names parts
  std::array<std::optional<std::size_t>, 3> truths;  ///< the columns that tell the rows of train, validation and test

  std::size_t last() const;  ///< the last column that is needed
  /// The part that a row of a table with this `header` is of: the name, or else the part whose column says True, or
  /// else the first of train, validation and test that has no column; "" if all of the fields are empty. Throws Error,
  /// naming `source` and the line, if a field is neither true nor false, or if one says another part than the others.
  std::string part_of(const CsvRow& row, const CsvRow& header, const std::string& source) const;
};

/// The first column of these `names` of a table whose first row is its header, and `is_train`, `is_valid` (or `is_val`)
/// and `is_test`, but for those that say something else than True or False in all rows; nothing if there is none of
/// them. Throws Error if two columns have one name.
std::optional<PartColumn> part_column(std::span<const CsvRow> table, const std::string& source,
                                      std::initializer_list<std::string_view> names = {"split", "set", "subset"});

}  // namespace vitrail::io
