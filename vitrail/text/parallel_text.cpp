#include "vitrail/text/parallel_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tables.h"

namespace vitrail::text {
namespace {

std::vector<std::string> lines_of_file(const std::string& file) {
  const std::string text = io::read_text(file);
  std::vector<std::string> lines = io::lines_of(std::string_view(text));
  check(!lines.empty(), "{}: the text is empty", file);
  return lines;
}

bool is_utf8(const std::string& line) { return find_invalid_utf8(line) == std::string::npos; }

bool is_blank_line(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

constexpr std::array<std::string_view, 2> source_columns = {"src", "source"};
constexpr std::array<std::string_view, 2> target_columns = {"tgt", "target"};

constexpr std::array<std::string_view, 3> labelled_columns = {"text", "sentence", "label"};  // of what is no pair

// `split`, unless it is null, is the part that the pair is of.
void add_pair(std::string source, std::string target, ParallelText& pairs, const std::string* split = nullptr) {
  if (is_blank_line(source) || is_blank_line(target)) {
    ++pairs.left_out;
    return;
  }
  pairs.source.push_back(std::move(source));
  pairs.target.push_back(std::move(target));
  if (split != nullptr) {
    pairs.split.push_back(io::part_in_cell(*split));
  }
}

// Whether a field is a number, as those that count the pairs are.
bool has_number(const io::CsvRow& row, std::size_t column) {
  return column < row.fields.size() && !row.fields[column].empty() &&
         row.fields[column].find_first_not_of("0123456789") == std::string::npos;
}

void read_rows(std::vector<io::CsvRow> rows, bool named, const std::string& file, ParallelText& pairs) {
  const auto src = rows.empty() ? std::nullopt : io::column_named(rows[0], source_columns, file);
  const auto tgt = rows.empty() ? std::nullopt : io::column_named(rows[0], target_columns, file);
  const bool known = src && tgt;
  const auto split = known ? io::part_column(rows, file, {"split"}) : std::nullopt;
  check(rows.empty() || known || !named || rows[0].fields.size() == 2,
        "{}: the first line must name the columns 'src' and 'tgt', but has {}", file,
        rows.empty() ? "" : io::quoted_list(rows[0].fields, "and"));
  const std::size_t source = known ? *src : 0;
  const std::size_t target = known ? *tgt : 1;
  const std::size_t part = split ? split->last() : 0;
  if (!known && rows.size() > 1 && rows[0].fields.size() > 2) {
    for (const std::size_t column : {source, target}) {
      check(std::ranges::any_of(rows, [&](const io::CsvRow& row) { return !has_number(row, column); }),
            "{}: the {} column has numbers alone, where texts and then their translations were expected: name the "
            "columns 'src' and 'tgt' in a first line",
            file, column == 0 ? "first" : "second");
    }
  }
  for (io::CsvRow& row : std::span(rows).subspan(rows.empty() || !(known || named) ? 0 : 1)) {
    check(row.fields.size() > std::max({source, target, part}),
          "{}: line {} has {}, but a text and its translation{} were expected", file, row.line,
          io::counted(std::ssize(row.fields), "fields"), split ? ", and the part that they are of," : "");
    const std::string of = split ? split->part_of(row, rows[0], file) : "";
    add_pair(std::move(row.fields[source]), std::move(row.fields[target]), pairs, split ? &of : nullptr);
  }
}

// The pairs of lines of objects. Hugging Face's name their languages, of which the first line says which is the source.
void read_pair_objects(std::string_view text, const std::string& file, ParallelText& pairs) {
  std::array<std::string, 2> languages;
  std::size_t number = 0;
  std::size_t number_of_pairs = 0;
  bool with_split = false;
  for (const std::string& line : io::lines_of(text)) {
    const std::string place = fmt::format("{}: line {}", file, ++number);
    if (is_blank_line(line)) {
      continue;
    }
    const auto split = part_of_object(io::parse_json(line, place), file, number);
    const auto object = nlohmann::ordered_json::parse(line);
    check(object.is_object(), "{} is no object, as one a line was expected", place);
    const bool translated = object.contains("translation") && object["translation"].is_object();
    const nlohmann::ordered_json& fields = translated ? object["translation"] : object;
    if (translated && languages[0].empty() && fields.size() == 2) {
      languages = {fields.items().begin().key(), std::next(fields.items().begin()).key()};
    }
    const auto value_of = [&](std::span<const std::string_view> names, const std::string& language) {
      std::vector<std::string> all(names.begin(), names.end());
      all.push_back(language);
      const auto found = std::ranges::find_if(
          all, [&](const std::string& name) { return fields.contains(name) && fields[name].is_string(); });
      check(found != all.end(),
            "{} has no pair: the fields 'src' and 'tgt', or a 'translation' into another language, were expected{}",
            place,
            translated && !languages[0].empty() ? fmt::format(", here '{}' and '{}'", languages[0], languages[1]) : "");
      return fields[*found].get<std::string>();
    };
    with_split = number_of_pairs++ == 0 ? split.has_value() : with_split;
    check(split.has_value() == with_split, "{} has {} 'split', but the lines before it have {}", place,
          split ? "a" : "no", with_split ? "one" : "none");
    add_pair(value_of(source_columns, translated ? languages[0] : "src"),
             value_of(target_columns, translated ? languages[1] : "tgt"), pairs, split ? &*split : nullptr);
  }
}

std::string ending_of(const std::string& file) {
  return io::lower_case(std::filesystem::path(file).extension().native());
}

}  // namespace

bool is_table_of_pairs(const std::string& file) {
  const std::string ending = ending_of(file);
  return ending == ".tsv" || ending == ".csv" || ending == ".jsonl";
}

bool names_pairs(const std::string& file) {
  const std::string ending = ending_of(file);
  if (!is_table_of_pairs(file)) {
    return false;
  }
  try {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    const std::string first(io::without_byte_order_mark(line));
    if (ending == ".jsonl") {
      const nlohmann::json object = io::parse_json(first, file);
      const auto has = [&](std::span<const std::string_view> names) {
        return std::ranges::any_of(names, [&](std::string_view name) { return object.contains(name); });
      };
      return object.is_object() &&
             (object.contains("translation") || (has(source_columns) && has(target_columns) && !has(labelled_columns)));
    }
    const std::vector<io::CsvRow> rows = rows_of_texts(first, ending, file);
    return !rows.empty() && io::column_named(rows[0], source_columns, file) &&
           io::column_named(rows[0], target_columns, file) && !io::column_named(rows[0], labelled_columns, file);
  } catch (const Error&) {
    return false;
  }
}

ParallelText parse_pairs(std::string_view content, std::string_view ending, const std::string& source) {
  check_corpus(content, source);
  ParallelText result;
  if (ending == ".jsonl") {
    read_pair_objects(content, source, result);
  } else {
    read_rows(rows_of_texts(content, ending, source), ending == ".csv", source, result);
  }
  check(!result.source.empty(), "'{}' has no pair of texts that are not empty", source);
  return result;
}

bool are_pairs_named(const std::string& source, const std::string& target) {
  return !source.empty() && (!target.empty() || is_table_of_pairs(source));
}

std::string shown_pairs(const std::string& source, const std::string& target) {
  return target.empty() ? fmt::format("'{}'", source) : fmt::format("'{}' and '{}'", source, target);
}

void check_equal_lines(const std::string& source, std::size_t source_lines, const std::string& target,
                       std::size_t target_lines) {
  check(source_lines == target_lines, "'{}' has {}, but '{}' has {}: line {} of '{}' has no counterpart", source,
        io::counted(static_cast<std::int64_t>(source_lines), "lines"), target, target_lines,
        std::min(source_lines, target_lines) + 1, source_lines > target_lines ? source : target);
}

ParallelText read_parallel_text(const std::string& source, const std::string& target, std::int64_t* skipped) {
  if (target.empty()) {
    return parse_pairs(read_corpus(source, skipped), ending_of(source), source);
  }
  std::vector<std::string> sources = lines_of_file(source);
  std::vector<std::string> targets = lines_of_file(target);
  check_equal_lines(source, sources.size(), target, targets.size());
  ParallelText result;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (skipped != nullptr && !(is_utf8(sources[i]) && is_utf8(targets[i]))) {
      ++*skipped;
      continue;
    }
    check_line(sources[i], source, i + 1);
    check_line(targets[i], target, i + 1);
    add_pair(std::move(sources[i]), std::move(targets[i]), result);
  }
  check(!result.source.empty(), "'{}' and '{}' have no pair of lines that are not empty", source, target);
  return result;
}

}  // namespace vitrail::text
