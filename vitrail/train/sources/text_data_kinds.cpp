#include "vitrail/train/sources/text_data_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/data/dataset.h"
#include "vitrail/data/sources/parts.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/image.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/parallel_text.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// A kind of texts, which one file holds.
struct TextKind {
  std::string_view what;
  std::string_view task;
  std::string_view flags;  // that its command needs beside the task
  bool (*is_of)(const fs::path& file);
  std::vector<PartOfData> (*look)(const fs::path& file);
};

std::vector<PartOfData> look_at_text(const fs::path& file) {
  return {part_of_data("", [&](PartOfData& part) {
    const std::string text = text::read_running_text(file);
    part.counts = {{"lines", std::ranges::count(text, '\n') + (text.ends_with('\n') ? 0 : 1)},
                   {"bytes", std::ssize(text)}};
  })};
}

std::vector<PartOfData> look_at_labels(const fs::path& file) {
  std::vector<text::LabelledText> texts;
  PartOfData whole = part_of_data("", [&](PartOfData&) { texts = text::read_labelled_texts(file); });
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, std::set<std::string>> labels;
  data::Parts order;
  for (const text::LabelledText& one : texts) {
    if (++counts[one.split] == 1) {
      order.push_back({.name = one.split, .shown = one.split});
    }
    labels[one.split].insert(one.label);
  }
  if (order.empty()) {
    return {std::move(whole)};
  }
  data::sort_parts(order);
  std::vector<PartOfData> result;
  for (const data::Part& one : order) {
    const std::set<std::string>& own = labels[one.name];
    result.push_back({.name = one.name,
                      .counts = {{"texts", counts[one.name]}},
                      .classes = text::sorted_labels({own.begin(), own.end()})});
    if (most_labels_come_once(std::ssize(own), counts[one.name])) {
      result.back().notes.push_back(
          "most labels come once: texts that belong together, or translations, are learnt with --task embed or "
          "translate");
    }
  }
  return result;
}

std::vector<PartOfData> look_at_pairs(const fs::path& file) {
  std::map<std::string, std::int64_t> counts;
  PartOfData whole = part_of_data("", [&](PartOfData& part) {
    const text::ParallelText pairs = text::read_parallel_text(file.string(), "");
    part.counts = {{"line pairs", std::ssize(pairs.source)}};
    for (const std::string& split : pairs.split) {
      ++counts[split];
    }
  });
  if (counts.empty()) {
    return {std::move(whole)};
  }
  std::vector<std::string> names;
  std::ranges::transform(counts, std::back_inserter(names), &std::pair<const std::string, std::int64_t>::first);
  std::vector<PartOfData> result;
  for (const data::Part& part : data::parts_named(names)) {
    result.push_back({.name = part.name, .counts = {{"line pairs", counts.at(part.name)}}});
  }
  return result;
}

std::vector<PartOfData> look_at_tags(const fs::path& file) {
  return {part_of_data("", [&](PartOfData& part) {
    const std::vector<text::TaggedSentence> sentences = text::read_tagged_sentences(file);
    std::int64_t words = 0;
    std::set<std::string> labels;
    for (const text::TaggedSentence& sentence : sentences) {
      words += std::ssize(sentence.words);
      labels.insert(sentence.labels.begin(), sentence.labels.end());
    }
    part.counts = {{"sentences", std::ssize(sentences)}, {"words", words}};
    part.classes = text::sorted_labels({labels.begin(), labels.end()});
  })};
}

const std::vector<TextKind>& text_kinds() {
  static const std::vector<TextKind> all = {
      {"texts and translations", "translate", "", [](const fs::path& file) { return text::names_pairs(file.string()); },
       look_at_pairs},
      {"text", "lm", "",
       [](const fs::path& file) { return text::names_texts_alone(file) && !data::is_table_of_images(file); },
       look_at_text},
      {"texts of classes", "classify-text", " --tokenizer TOKENIZER",
       [](const fs::path& file) { return text::names_table(file) && !data::is_table_of_images(file); }, look_at_labels},
      {"words with labels", "tag", " --tokenizer TOKENIZER",
       [](const fs::path& file) { return file.extension() == ".conll"; }, look_at_tags},
      {"text", "lm", "", [](const fs::path& file) { return file.extension() == ".txt"; }, look_at_text},
  };
  return all;
}

// The kind that a file is of by its name; null if that says nothing.
const TextKind* kind_of_texts(const fs::path& file) {
  const auto kind = std::ranges::find_if(text_kinds(), [&](const TextKind& one) { return one.is_of(file); });
  return kind == text_kinds().end() ? nullptr : &*kind;
}

bool is_for_validation(const std::string& name) { return data::is_of_part(name, "validation"); }

// The file among `files` that one would train on: the first that is called so, or else the first.
const fs::path& file_to_train_on(const std::vector<fs::path>& files) {
  const auto named = std::ranges::find_if(files, [](const fs::path& file) {
    return data::is_training_split(data::part_in_name(file.filename().string()));
  });
  return named == files.end() ? files.front() : *named;
}

std::string command_on(const TextKind& kind, const std::vector<fs::path>& files) {
  const fs::path& training = file_to_train_on(files);
  const auto validation = std::ranges::find_if(files, [&](const fs::path& file) {
    return file != training && is_for_validation(data::part_in_name(file.filename().string()));
  });
  return fmt::format("train {} --task {}{}{}", argument_of(training), kind.task, kind.flags,
                     validation == files.end()  ? ""
                     : kind.task == "translate" ? " --val-src " + argument_of(*validation)
                                                : " --val-data " + argument_of(*validation));
}

// The data of one kind that files of it hold, each as a part of the file's name, or as parts behind it.
DataOfKind texts_of_files(const TextKind& kind, const std::vector<fs::path>& files) {
  DataOfKind result{kind.what, kind.task, "", {}};
  std::vector<fs::path> usable;
  for (const fs::path& file : files) {
    bool opened = false;
    for (PartOfData& part : kind.look(file)) {
      opened = opened || part.error.empty();
      const std::string name = file.filename().string();
      part.name = part.name.empty() ? name : fmt::format("{}, {}", name, part.name);
      result.parts.push_back(std::move(part));
    }
    if (opened) {
      usable.push_back(file);
    }
  }
  result.command = usable.empty() ? "" : command_on(kind, usable);
  return result;
}

constexpr std::array<std::string_view, 20> usual_languages = {".ar", ".cs", ".de", ".el", ".en", ".es", ".fi",
                                                              ".fr", ".hi", ".it", ".ja", ".ko", ".nl", ".pl",
                                                              ".pt", ".ro", ".ru", ".sv", ".tr", ".zh"};

// Whether the end of a file's name is one of a language, as far as that can be told: ".de", ".eng".
bool ends_with_language(const fs::path& file) {
  const std::string end = file.extension().string();
  const bool letters = std::all_of(end.begin() + (end.empty() ? 0 : 1), end.end(),
                                   [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; });
  const bool of_a_part = !data::part_in_name(file.stem().string()).empty();
  return std::ranges::find(usual_languages, end) != usual_languages.end() ||
         (of_a_part && (end.size() == 3 || end.size() == 4) && letters && !is_file_of_texts(file) &&
          !data::holds_images(file) && !io::is_image_name(file));
}

// The texts and their translations in files of one name but for the language behind it, "train.de" and "train.en".
std::vector<DataOfKind> translations_in(const std::vector<fs::path>& files) {
  std::map<std::string, std::vector<fs::path>> by_name;
  for (const fs::path& file : files) {
    if (ends_with_language(file)) {
      by_name[file.stem().string()].push_back(file);
    }
  }
  std::erase_if(by_name, [](const auto& one) { return one.second.size() < 2; });
  if (by_name.empty()) {
    return {};
  }
  data::Parts order;
  for (const auto& [name, languages] : by_name) {
    order.push_back({.name = name, .shown = name});
  }
  data::sort_parts(order);
  DataOfKind kind{"texts and translations", "translate", "", {}};
  std::vector<fs::path> training;
  std::vector<fs::path> validation;
  for (const data::Part& one : order) {
    const std::vector<fs::path>& own = by_name.at(one.name);
    kind.parts.push_back(part_of_data(one.name, [&](PartOfData& part) {
      const text::ParallelText lines = text::read_parallel_text(own[0].string(), own[1].string());
      part.counts = {{"line pairs", std::ssize(lines.source)}};
      if (lines.left_out > 0) {
        part.notes.push_back(
            fmt::format("{}: left out {} with an empty line", one.name, io::counted(lines.left_out, "line pairs")));
      }
      if (own.size() > 2) {
        std::vector<std::string> others;
        std::transform(own.begin() + 2, own.end(), std::back_inserter(others),
                       [](const fs::path& file) { return file.filename().string(); });
        part.notes.push_back(fmt::format("there is {} too: --src and --tgt name any two", fmt::join(others, ", ")));
      }
    }));
    if (!kind.parts.back().error.empty()) {
      continue;
    }
    if (training.empty()) {
      training = own;  // of the part for training, which is the first
    }
    if (validation.empty() && is_for_validation(data::part_in_name(one.name))) {
      validation = own;
    }
  }
  if (!training.empty()) {
    kind.command =
        fmt::format("train --task translate --src {} --tgt {}", argument_of(training[0]), argument_of(training[1]));
    if (!validation.empty() && validation != training) {
      kind.command += fmt::format(" --val-src {} --val-tgt {}", argument_of(validation[0]), argument_of(validation[1]));
    }
  }
  return {std::move(kind)};
}

}  // namespace

bool is_file_of_texts(const fs::path& file) { return kind_of_texts(file) != nullptr; }

DataOfKind texts_of_file(const fs::path& file) {
  const TextKind* const named = kind_of_texts(file);
  const TextKind& kind = named == nullptr ? text_kinds().back() : *named;
  DataOfKind result{kind.what, kind.task, "", kind.look(file)};
  result.command = can_be_opened(result) ? command_on(kind, {file}) : "";
  return result;
}

std::vector<DataOfKind> texts_of_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with(".")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<DataOfKind> all = translations_in(files);
  for (const TextKind& kind : text_kinds()) {
    std::vector<fs::path> own;
    std::ranges::copy_if(files, std::back_inserter(own), [&](const fs::path& file) {
      return file.extension() != ".json" && kind_of_texts(file) == &kind;
    });
    if (!own.empty()) {
      all.push_back(texts_of_files(kind, own));
    }
  }
  return all;
}

}  // namespace vitrail::train
