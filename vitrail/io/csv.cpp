#include "vitrail/io/csv.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
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
  const auto has = [&](char separator) { return first.find(separator) != std::string_view::npos; };
  const bool is_tsv = lower_case(file.extension().native()) == ".tsv";
  return parse_csv(text, file.string(), is_tsv ? '\t' : has(',') ? ',' : has(';') ? ';' : has('\t') ? '\t' : ',');
}

std::vector<CsvRow> read_table(const std::filesystem::path& file) { return parse_table(read_text(file), file); }

std::optional<std::size_t> column_named(const CsvRow& header, std::span<const std::string_view> names,
                                        const std::string& source) {
  for (const std::string_view name : names) {
    const auto is_named = [&](const std::string& field) { return lower_case(trimmed(field)) == name; };
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

std::string other_columns(const CsvRow& header, std::span<const std::string_view> names, std::size_t taken) {
  std::vector<std::string> left;
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    if (i != taken && std::ranges::find(names, lower_case(trimmed(header.fields[i]))) != names.end()) {
      left.push_back(on_one_line(trimmed(header.fields[i])));
    }
  }
  return left.empty() ? ""
                      : fmt::format("takes the column '{}' and leaves {}", on_one_line(trimmed(header.fields[taken])),
                                    quoted_list(left, "and"));
}

namespace {

// The parts of PartColumn::truths, and the names of their columns.
constexpr std::array<const char*, 3> told_parts = {"train", "validation", "test"};
const std::array<std::vector<std::string_view>, 3> truth_columns = {
    {{"is_train"}, {"is_valid", "is_val"}, {"is_test"}}};

constexpr std::array<std::string_view, 6> true_words = {"true", "1", "1.0", "yes", "t", "y"};
constexpr std::array<std::string_view, 6> false_words = {"false", "0", "0.0", "no", "f", "n"};

bool is_true(const std::string& word) { return std::ranges::find(true_words, word) != true_words.end(); }

}  // namespace

bool says_truth(std::string_view cell) {
  const std::string word = part_in_cell(cell);
  return is_true(word) || std::ranges::find(false_words, word) != false_words.end();
}

std::string part_in_cell(std::string_view cell) { return lower_case(trimmed(cell)); }

std::size_t PartColumn::last() const {
  std::size_t column = named.value_or(0);
  for (const std::optional<std::size_t>& truth : truths) {
    column = std::max(column, truth.value_or(0));
  }
  return column;
}

// The part of told_parts that a name is of: 2 of "test2017"; none of "fold3".
static std::optional<std::size_t> told_part_of(std::string_view name) {
  const auto begins = [&](std::string_view word) { return name.starts_with(word); };
  return begins("train")                                    ? std::optional<std::size_t>(0)
         : begins("val") || begins("dev") || begins("eval") ? std::optional<std::size_t>(1)
         : begins("test")                                   ? std::optional<std::size_t>(2)
                                                            : std::nullopt;
}

std::string PartColumn::part_of(const CsvRow& row, const CsvRow& header, const std::string& source) const {
  const std::string name = named ? part_in_cell(row.fields[*named]) : "";
  const std::optional<std::size_t> told = told_part_of(name);
  std::optional<std::size_t> yes;     // the part whose column says True
  std::optional<std::size_t> untold;  // the first part that has no column
  bool filled = false;
  const auto check_one_part = [&](bool differs, std::size_t one, std::size_t other) {
    check(!differs, "{}: line {} is of two parts, by its '{}' and its '{}'", source, row.line, header.fields[one],
          header.fields[other]);
  };
  for (std::size_t i = 0; i < truths.size(); ++i) {
    if (!truths[i]) {
      untold = untold.value_or(i);
      continue;
    }
    const std::size_t column = *truths[i];
    const std::string word = part_in_cell(row.fields[column]);
    check(word.empty() || says_truth(word),
          "{}: line {} says '{}' of which part it is, where True or False was expected", source, row.line,
          row.fields[column]);
    filled = filled || !word.empty();
    if (told) {  // what is valid is often all that is not for training
      const bool agrees = is_true(word) ? *told == i || (i == 1 && *told == 2) : word.empty() || *told != i;
      check_one_part(!agrees, *named, column);
    }
    if (is_true(word)) {
      check_one_part(yes.has_value(), truths[yes.value_or(i)].value_or(column), column);
      yes = i;
    }
  }
  if (!name.empty() || !filled) {
    return name;
  }
  check(yes || untold, "{}: line {} is of no part: all of its columns say False", source, row.line);
  return told_parts[yes ? *yes : *untold];
}

std::optional<PartColumn> part_column(std::span<const CsvRow> table, const std::string& source,
                                      std::initializer_list<std::string_view> names) {
  PartColumn found;
  found.named = column_named(table.front(), names, source);
  bool any = found.named.has_value();
  for (std::size_t i = 0; i < truth_columns.size(); ++i) {
    found.truths[i] = column_named(table.front(), truth_columns[i], source);
    const auto tells = [column = found.truths[i]](const CsvRow& row) {
      return *column < row.fields.size() && says_truth(row.fields[*column]);
    };
    if (found.truths[i] && table.size() > 1 && std::ranges::none_of(table.subspan(1), tells)) {
      found.truths[i].reset();
    }
    any = any || found.truths[i];
  }
  return any ? std::optional(found) : std::nullopt;
}

}  // namespace vitrail::io
