#include "vitrail/io/csv.h"

#include <algorithm>
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

}  // namespace vitrail::io
