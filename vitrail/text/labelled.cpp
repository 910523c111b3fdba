#include "vitrail/text/labelled.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/tables.h"

namespace vitrail::text {
namespace {

// The names that a column may have.
constexpr std::array<std::string_view, 3> text_columns = {"text", "sentence", "sentence1"};
constexpr std::array<std::string_view, 2> second_columns = {"text_pair", "sentence2"};
constexpr std::array<std::string_view, 1> label_columns = {"label"};

// Of a table that is to be read as running text, but has none.
constexpr const char* plain_text_remedy = " (a text that is to be read as it stands has another ending, such as .txt)";

// Spaces at the ends of a label make no other of it.
std::string label_in(const std::string& field) { return std::string(io::trimmed(field)); }

void check_filled(const LabelledText& text, bool labelled, const std::string& source, std::size_t line) {
  check(!text.text.empty() && !(labelled && text.label.empty()), "{}: line {} has no {}", source, line,
        text.text.empty() ? "text" : "label");
}

// The column that has one of these names. A table that has several of them does not say which is meant.
std::optional<std::size_t> one_column(const io::CsvRow& names, std::span<const std::string_view> known,
                                      const std::string& source) {
  const auto found = io::column_named(names, known, source);
  for (const std::string_view other : known) {
    const auto more = io::column_named(names, {other}, source);
    check(!more || more == found, "{}: line {} names '{}' and '{}', each of which could be meant", source, names.line,
          names.fields[found.value_or(0)], other);
  }
  return found;
}

// The texts of rows whose first one names the columns.
std::vector<LabelledText> read_columns(const std::vector<io::CsvRow>& rows, std::size_t text,
                                       std::optional<std::size_t> label, Labels labels, const std::string& source) {
  std::vector<LabelledText> result;
  const auto second = one_column(rows[0], second_columns, source);
  const auto split = io::part_column(rows, source, {"split"});
  for (const io::CsvRow& row : std::span(rows).subspan(1)) {
    check(row.fields.size() == rows[0].fields.size(), "{}: line {} has {}, expected {}", source, row.line,
          io::counted(std::ssize(row.fields), "fields"), rows[0].fields.size());
    result.push_back({row.fields[text], second ? row.fields[*second] : "", label ? label_in(row.fields[*label]) : "",
                      split ? split->part_of(row, rows[0], source) : ""});
    check_filled(result.back(), label.has_value(), source, row.line);
    check(labels != Labels::none || result.back().second.empty(), "{}: line {} has two texts, where one was expected",
          source, row.line);
  }
  return result;
}

std::optional<std::int64_t> whole(const std::string& word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

// Whether the rows of a table hold numbers alone, as an edge list does, but for a first one that names the columns.
bool has_numbers_only(std::span<const io::CsvRow> rows) {
  const auto is_number = [](const std::string& field) { return whole(field).has_value(); };
  const bool named = rows.size() > 1 && std::ranges::none_of(rows[0].fields, is_number);
  return std::ranges::all_of(rows.subspan(named ? 1 : 0),
                             [&](const io::CsvRow& row) { return std::ranges::all_of(row.fields, is_number); });
}

// The texts of rows `label<TAB>text`, or without a label where it is optional.
std::vector<LabelledText> read_pairs(const std::vector<io::CsvRow>& rows, Labels labels, const std::string& source) {
  std::vector<LabelledText> result;
  for (const io::CsvRow& row : rows) {
    const bool alone = labels == Labels::optional && row.fields.size() == 1;
    check(alone || row.fields.size() == 2, "{}: line {} has {}, expected 2: a label, a tab, a text", source, row.line,
          io::counted(std::ssize(row.fields), "fields"));
    result.push_back({row.fields.back(), "", alone ? "" : label_in(row.fields[0])});
    check_filled(result.back(), !alone, source, row.line);
  }
  check(result.empty() || rows[0].fields.size() == 1 || !has_numbers_only(rows),
        "{}: both columns are numbers: a label, a tab, a text were expected", source);
  return result;
}

std::vector<LabelledText> read_table(const std::vector<io::CsvRow>& rows, bool must_be_named, Labels labels,
                                     const std::string& source) {
  if (rows.empty()) {
    return {};
  }
  const auto text = one_column(rows[0], text_columns, source);
  const auto label = io::column_named(rows[0], label_columns, source);
  if (text && (label || labels != Labels::needed)) {
    return read_columns(rows, *text, labels == Labels::none ? std::nullopt : label, labels, source);
  }
  check(!must_be_named && labels != Labels::none, "{}: the first line must name {}, but has '{}'{}", source,
        labels == Labels::needed ? "the columns 'text' and 'label'" : "the column 'text'",
        fmt::join(rows[0].fields, "', '"), labels == Labels::none ? plain_text_remedy : "");
  return read_pairs(rows, labels, source);
}

std::vector<LabelledText> read_objects(std::string_view corpus, Labels labels, const std::string& source) {
  std::vector<LabelledText> result;
  std::size_t number = 0;
  for (const std::string& line : io::lines_of(corpus)) {
    const std::string place = fmt::format("{}: line {}", source, ++number);
    if (line.empty()) {
      continue;
    }
    const nlohmann::json object = io::parse_json(line, place);
    io::Fields f(object, place);
    const auto first_of = [&](std::span<const std::string_view> names, bool any = false) -> std::optional<std::string> {
      for (const std::string_view name : names) {
        if (f.kind(name) != io::Kind::absent) {
          for (const std::string_view other : names) {
            check(other == name || f.kind(other) == io::Kind::absent,
                  "{} has '{}' and '{}', each of which could be meant", place, name, other);
          }
          const io::Kind kind = f.kind(name);
          const bool plain =
              kind == io::Kind::integer || (any && (kind == io::Kind::number || kind == io::Kind::boolean));
          return plain ? f.raw(name).dump() : f.get<std::string>(name);
        }
      }
      return std::nullopt;
    };
    const auto text = first_of(text_columns);
    const bool alone = labels == Labels::none;
    const auto label = alone ? std::nullopt : first_of(label_columns, true);
    const bool has_label = label ? !label->empty() : labels != Labels::needed;
    const bool has_text = text && !text->empty();
    check(has_text && has_label, "{} has no '{}'{}", place, has_text ? "label" : "text",
          alone && !has_text ? plain_text_remedy : "");
    const std::string second = first_of(second_columns).value_or("");
    check(second.empty() || !alone, "{} has two texts, where one was expected", place);
    result.push_back({*text, second, label.value_or(""), part_of_object(object, source, number).value_or("")});
  }
  return result;
}

std::string text_in(const std::filesystem::path& path, std::int64_t* skipped) {
  const std::string text = io::read_text(path);
  return skipped == nullptr ? text : without_broken_lines(text, *skipped);
}

// The number of words between spaces and tabs.
std::size_t columns_of(const std::string& line) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string::npos; ++count) {
    at = std::min(line.find_first_of(" \t", at), line.size());
  }
  return count;
}

// Whether a line is a comment of CoNLL-U, such as "# sent_id = 1".
bool is_conll_u_comment(const std::string& line) {
  return line.starts_with("# ") && line.find(" = ") != std::string::npos;
}

// Whether a line is one of CoNLL-U: a comment, or the ten columns of a word with its number.
bool is_conll_u_line(const std::string& line) {
  return is_conll_u_comment(line) ||
         (std::ranges::count(line, '\t') == 9 && whole(line.substr(0, line.find_first_of("-.\t"))));
}

}  // namespace

std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& path, std::int64_t* skipped, Labels labels) {
  return parse_labelled_texts(text_in(path, skipped), io::lower_case(path.extension().native()), path.string(), labels);
}

std::vector<LabelledText> parse_labelled_texts(std::string_view content, std::string_view ending,
                                               const std::string& source, Labels labels) {
  check_corpus(content, source);
  content = io::without_byte_order_mark(content);
  std::vector<LabelledText> texts =
      ending == ".jsonl" || ending == ".json"
          ? read_objects(content, labels, source)
          : read_table(rows_of_texts(content, ending, source), ending == ".csv", labels, source);
  check(!texts.empty(), "{}: there are no texts", source);
  return texts;
}

std::string read_running_text(const std::filesystem::path& path, std::int64_t* skipped) {
  if (!names_table(path)) {
    return read_corpus(path.string(), skipped);
  }
  std::string all;
  std::set<std::string> parts;
  for (const LabelledText& one : read_labelled_texts(path, skipped, Labels::none)) {
    all += (all.empty() ? "" : "\n\n") + with_line_feeds(one.text);
    parts.insert(one.split);
  }
  check(parts.size() < 2, "{}: its texts are of the parts {}: a file of each part was expected", path.string(),
        io::quoted_list({parts.begin(), parts.end()}, "and"));
  return all;
}

bool names_texts_alone(const std::filesystem::path& path) {
  if (!names_table(path)) {
    return false;
  }
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line) && io::trimmed(io::without_byte_order_mark(line)).empty()) {
  }
  const std::string ending = io::lower_case(path.extension().native());
  const std::string first(io::without_byte_order_mark(line));
  std::vector<std::string> names;
  try {
    if (ending == ".jsonl" || ending == ".json") {
      const nlohmann::json object = io::parse_json(first, path.string());
      for (const auto& [key, value] : object.items()) {
        names.push_back(key);
      }
    } else {
      names = rows_of_texts(first, ending, path.string()).at(0).fields;
    }
  } catch (const std::exception&) {  // a line of none
    return false;
  }
  const auto has = [&](std::span<const std::string_view> known) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return std::ranges::find(known, io::lower_case(io::trimmed(name))) != known.end();
    });
  };
  return has(text_columns) && !has(second_columns) && !has(label_columns);
}

bool names_table(const std::filesystem::path& path) {
  const std::string ending = io::lower_case(path.extension().native());
  return ending == ".csv" || ending == ".tsv" || ending == ".json" || ending == ".jsonl";
}

std::vector<TaggedSentence> read_tagged_sentences(const std::filesystem::path& path, std::int64_t* skipped) {
  return parse_tagged_sentences(text_in(path, skipped), path.string());
}

std::vector<TaggedSentence> parse_tagged_sentences(std::string_view content, const std::string& source) {
  check_corpus(content, source);
  content = io::without_byte_order_mark(content);
  std::vector<TaggedSentence> sentences;
  bool open = false;
  std::size_t number = 0;
  std::size_t columns = 0;  // of the first line
  for (const std::string& line : io::lines_of(content)) {
    ++number;
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line.starts_with("-DOCSTART-")) {
      open = false;
      continue;
    }
    check(!is_conll_u_line(line),
          "{}: line {} is CoNLL-U's: write the columns of the word and of its label alone, such as "
          "`grep -E '^[0-9]+[[:space:]]|^$' FILE | cut -f2,4`",
          source, number);
    const std::size_t end = line.find_last_not_of(" \t") + 1;
    const std::size_t word_end = std::min(line.find_first_of(" \t", begin), end);
    check(word_end < end, "{}: line {} has a word, but no label", source, number);
    const std::size_t own = columns_of(line);
    columns = columns == 0 ? own : columns;
    check(own == columns, "{}: line {} has {} columns, but those before have {}: a word and its label were expected",
          source, number, own, columns);
    const std::size_t label_begin = line.find_last_of(" \t", end - 1) + 1;
    if (!open) {
      sentences.emplace_back();
      open = true;
    }
    sentences.back().words.push_back(line.substr(begin, word_end - begin));
    sentences.back().labels.push_back(line.substr(label_begin, end - label_begin));
  }
  check(!sentences.empty(), "{}: there are no sentences", source);
  return sentences;
}

bool is_conll_u(const std::filesystem::path& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!io::trimmed(line).empty() && !is_conll_u_comment(line)) {
      return is_conll_u_line(line);
    }
  }
  return false;
}

std::vector<std::string> sorted_labels(std::vector<std::string> labels) {
  std::ranges::sort(labels, [](const std::string& a, const std::string& b) {
    const auto x = whole(a);
    const auto y = whole(b);
    return x && y ? *x < *y : x.has_value() != y.has_value() ? x.has_value() : a < b;
  });
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

std::int64_t index_of_label(std::span<const std::string> labels, const std::string& label, std::string_view source) {
  const auto found = std::ranges::find(labels, label);
  check(found != labels.end(), "{}: the label '{}' is none of the {} that are known{}", source, label, labels.size(),
        io::did_you_mean(label, {labels.begin(), labels.end()}));
  return found - labels.begin();
}

}  // namespace vitrail::text
