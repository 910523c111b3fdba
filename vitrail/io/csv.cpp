#include "vitrail/io/csv.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

// Whether a line ends with this byte: with "\n", behind "\r" or not, or with "\r" alone, as on an old Macintosh.
bool ends_line(std::string_view text, std::size_t at) {
  return text[at] == '\n' || (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n'));
}

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& source, char separator) {
  text = without_byte_order_mark(text);
  std::vector<CsvRow> rows;
  CsvRow row{1, {}};
  std::string field;
  std::size_t line = 1;
  bool quoted = false;
  const auto end_row = [&] {
    row.fields.push_back(std::move(field));
    field.clear();
    if (row.fields.size() > 1 || !row.fields[0].empty()) {  // not a blank line
      check(rows.empty() || row.fields.size() <= rows[0].fields.size(),
            "{}: line {} has {} fields, but line {} has {}: a field that has a {} in it stands in double quotes",
            source, row.line, row.fields.size(), rows.empty() ? 0 : rows[0].line,
            rows.empty() ? 0 : rows[0].fields.size(),
            separator == '\t'  ? "tab"
            : separator == ';' ? "semicolon"
                               : "comma");
      rows.push_back(std::move(row));
    }
    row = {line, {}};
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += ends_line(text, i) ? 1 : 0;
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else if (c == '"') {
        quoted = false;
      } else {
        field += c;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == separator) {
      row.fields.push_back(std::move(field));
      field.clear();
    } else if (ends_line(text, i)) {
      end_row();
    } else if (c != '\r') {
      field += c;
    }
  }
  check(!quoted, "{}: the quote opened in line {} is never closed", source, row.line);
  end_row();
  return rows;
}

bool is_table_name(const std::filesystem::path& file) {
  const std::string extension = lower_case(file.extension().native());
  return extension == ".csv" || extension == ".tsv";
}

bool is_table_file(const std::filesystem::path& file) { return is_table_name(file) && is_file(file); }

std::vector<CsvRow> parse_table(std::string_view text, const std::filesystem::path& file) {
  const std::size_t begin = std::min(text.find_first_not_of("\r\n"), text.size());
  const std::string_view first = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  const bool semicolons = first.find(';') != std::string_view::npos && first.find(',') == std::string_view::npos;
  const bool tabs = lower_case(file.extension().native()) == ".tsv";
  return parse_csv(text, file.string(), tabs ? '\t' : semicolons ? ';' : ',');
}

std::vector<CsvRow> read_table(const std::filesystem::path& file) { return parse_table(read_text(file), file); }

std::optional<std::size_t> column_named(const CsvRow& header, std::span<const std::string_view> names,
                                        const std::string& source) {
  for (const std::string_view name : names) {
    const auto is_named = [&](const std::string& field) { return lower_case(field) == name; };
    const auto found = std::ranges::find_if(header.fields, is_named);
    if (found != header.fields.end()) {
      check(std::find_if(found + 1, header.fields.end(), is_named) == header.fields.end(),
            "{}: line {} names two columns '{}'", source, header.line, name);
      return static_cast<std::size_t>(found - header.fields.begin());
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> column_named(const CsvRow& header, std::initializer_list<std::string_view> names,
                                        const std::string& source) {
  return column_named(header, std::span(names.begin(), names.size()), source);
}

namespace {

struct TruthColumn {
  std::string_view name, when_true, when_false;
};

constexpr std::array<TruthColumn, 4> truth_columns = {{
    {"is_valid", "validation", "train"},
    {"is_val", "validation", "train"},
    {"is_train", "train", "validation"},
    {"is_test", "test", "train"},
}};

constexpr std::array<std::string_view, 5> true_words = {"true", "1", "1.0", "yes", "t"};
constexpr std::array<std::string_view, 5> false_words = {"false", "0", "0.0", "no", "f"};

// Nothing if the field is empty.
std::optional<bool> truth_of(const CsvRow& row, std::size_t column, const std::string& source) {
  const std::string word = part_in_cell(row.fields[column]);
  if (word.empty()) {
    return std::nullopt;
  }
  const bool is_true = std::ranges::find(true_words, word) != true_words.end();
  check(is_true || std::ranges::find(false_words, word) != false_words.end(),
        "{}: line {} says '{}' of which part it is, where True or False was expected", source, row.line,
        row.fields[column]);
  return is_true;
}

}  // namespace

std::string part_in_cell(std::string_view cell) { return lower_case(trimmed(cell)); }

std::string PartColumn::part_of(const CsvRow& row, const std::string& source) const {
  const std::string word = part_in_cell(row.fields[column]);
  if (when_true.empty()) {
    return word;
  }
  if (test && truth_of(row, *test, source) == true) {
    return "test";
  }
  const std::optional<bool> truth = truth_of(row, column, source);
  return !truth ? "" : *truth ? when_true : when_false;
}

std::optional<PartColumn> part_column(const CsvRow& header, const std::string& source,
                                      std::initializer_list<std::string_view> names) {
  if (const auto column = column_named(header, names, source)) {
    return PartColumn{*column};
  }
  for (const auto& [name, when_true, when_false] : truth_columns) {
    if (const auto column = column_named(header, {name}, source)) {
      const auto test = column_named(header, {"is_test"}, source);
      return PartColumn{*column, std::string(when_true), std::string(when_false), test == column ? std::nullopt : test};
    }
  }
  return std::nullopt;
}

}  // namespace vitrail::io
