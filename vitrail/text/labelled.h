/// \file
/// Texts with labels, and sentences whose words have labels, from files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// A text, or two that belong together, and its class.
struct LabelledText {
  std::string text;
  std::string second;  ///< empty: there is none
  std::string label;
  std::string split = {};  ///< the part that it is of, "train", "validation", "test" …; empty: none is said
};

/// Whether the texts of a file have labels.
enum class Labels {
  needed,
  optional,  ///< a table may lack the column, and a line that has no tab is a text
  none  ///< the first line of any table names its columns; that of labels is not read, and second texts are refused
};

/// Reads texts with labels by the file's name:
/// - `.csv` and `.tsv` whose first line names columns: `text` (or `sentence`, `sentence1`), `label`, and perhaps
///   `text_pair` (or `sentence2`) and `split`
/// - `.jsonl` or `.json`: a line, an object with these fields
/// - any other table: `label<TAB>text` a line
///
/// Throws Error, naming file and line, if one has no text or no label, is not UTF-8, or if there are none.
/// With `skipped`, lines that are not UTF-8 are left out and counted there instead.
std::vector<LabelledText> read_labelled_texts(const std::filesystem::path& path, std::int64_t* skipped = nullptr,
                                              Labels labels = Labels::needed);
/// The texts of a file's content, given the ending of its name. Errors name `source`.
std::vector<LabelledText> parse_labelled_texts(std::string_view content, std::string_view ending,
                                               const std::string& source, Labels labels = Labels::needed);
/// The text of a corpus: of a table (names_table()) its texts, parted by blank lines; of any other file what
/// read_corpus() reads. Throws Error, too, if the texts of a table are of several parts.
std::string read_running_text(const std::filesystem::path& path, std::int64_t* skipped = nullptr);
/// Whether a file is a table of texts (names_table()) whose first line names them, and neither labels nor second texts.
bool names_texts_alone(const std::filesystem::path& path);
/// Whether the file's name says that it is a table of texts: `.csv`, `.tsv`, `.json` or `.jsonl`.
bool names_table(const std::filesystem::path& path);

/// A sentence whose words have labels.
struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<std::string> labels;
};

/// Reads sentences of a table as those of CoNLL: a word a line, first its letters and last its label, between spaces or
/// tabs; blank lines part sentences, and lines that begin with -DOCSTART- are passed over. Throws Error, naming file
/// and line, if one has no label, has not as many columns as the first, is not UTF-8, or if there are none. With
/// `skipped`, lines that are not UTF-8 are left out and counted there instead.
std::vector<TaggedSentence> read_tagged_sentences(const std::filesystem::path& path, std::int64_t* skipped = nullptr);
/// The sentences of a file's content. Errors name `source`.
std::vector<TaggedSentence> parse_tagged_sentences(std::string_view content, const std::string& source);

/// Whether the first word of a file stands in a line of CoNLL-U, which parse_tagged_sentences() refuses.
bool is_conll_u(const std::filesystem::path& path);

/// The labels without repetition, sorted: numbers as such, anything else by its bytes.
std::vector<std::string> sorted_labels(std::vector<std::string> labels);

/// The place of `label` among `labels`. Throws Error, naming `source`, if it is none of them.
std::int64_t index_of_label(std::span<const std::string> labels, const std::string& label, std::string_view source);

}  // namespace vitrail::text
