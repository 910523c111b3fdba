#include "vitrail/train/tasks/data_kinds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sequences/sequences.h"
#include "vitrail/data/sources/tables.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/labelled.h"
#include "vitrail/text/parallel_text.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using data::Parts;

// A kind of data about images, which one source may hold beside others.
struct ImageKind {
  std::string_view what;
  std::string_view task;
  std::string_view command;
  bool (*has)(const fs::path& source);  // by names and headers; null: opening alone tells
  Parts (*parts)(const fs::path& source);
  void (*look)(const fs::path& source, const std::string& split, PartOfData& part);
};

// Whether scenes that are drawn when they are asked for are whole, with boxes, captions and questions, rather than
// images of the classes of a task.
bool draws_whole_scenes(const fs::path& source) {
  return data::is_scene_source(source) && data::read_scene_source(source).scenes.task == data::SceneTask::none;
}

bool has_captions(const fs::path& source) { return draws_whole_scenes(source) || data::has_captions(source); }
bool has_questions(const fs::path& source) { return draws_whole_scenes(source) || data::has_questions(source); }

void look_at_boxes(const fs::path& source, const std::string& split, PartOfData& part) {
  const data::BoxedImages boxed = data::open_boxed_images(source, {.split = split, .classes = {}});
  part.counts = {{"images", boxed.images->size()}, {"boxes", boxed.count()}};
  part.classes = boxed.classes;
  part.notes = boxed.notes;
}

void look_at_captions(const fs::path& source, const std::string& split, PartOfData& part) {
  const data::CaptionedImages pairs = data::open_captioned_images(source, split);
  part.counts = {{"images", pairs.images->size()}, {"captions", pairs.count()}};
  part.notes = pairs.images->notes();
}

void look_at_questions(const fs::path& source, const std::string& split, PartOfData& part) {
  const data::ImageQuestions asked = data::open_questions_of(source, split);
  part.counts = {{"images", asked.images->size()}, {"questions", asked.count()}};
  std::map<std::string, std::int64_t> answers;
  for (const std::vector<data::Question>& questions : asked.questions) {
    for (const data::Question& question : questions) {
      ++answers[question.answer];
    }
  }
  for (const auto& [answer, count] : answers) {
    part.classes.push_back(answer);
  }
  std::ranges::stable_sort(part.classes, [&](const std::string& a, const std::string& b) {
    return answers[a] > answers[b];  // the most frequent first
  });
  part.notes = asked.images->notes();
}

void look_at_classes(const fs::path& source, const std::string& split, PartOfData& part) {
  const std::unique_ptr<data::Dataset> images =
      data::open_dataset(source, {.split = split, .classes = {}, .allow_single_class = false});
  part.counts = {{"images", images->size()}};
  part.classes = images->classes();
  part.notes = images->notes();
}

void look_at_sequences(const fs::path& source, const std::string& split, PartOfData& part) {
  const data::Sequences found = data::open_sequences(source, {.split = split, .classes = {}, .frames = {}});
  check(std::ranges::any_of(found.sequences, [](const data::Sequence& one) { return one.frames.size() > 1; }),
        "each sequence has one frame");
  // A folder of shards reads like one class, whose sequences are the folders inside of them.
  check(std::ranges::none_of(found.classes, [](const std::string& name) { return io::is_tar_name(name); }),
        "there are shards");
  part.counts = {{"sequences", std::ssize(found.sequences)}, {"frames", found.images->size()}};
  part.classes = found.classes;
  part.notes = found.notes;
}

const std::vector<ImageKind>& image_kinds() {
  static const std::vector<ImageKind> all = {
      {"images with boxes", "detect", "train {} --task detect", data::has_boxes, data::parts_of_boxes, look_at_boxes},
      {"images with captions", "caption", "train {} --task caption", has_captions, data::parts_of_pairs,
       look_at_captions},
      {"questions about images", "vqa", "train {} --task vqa", has_questions, data::parts_of_questions,
       look_at_questions},
      {"images of classes", "classify", "train {}", nullptr, data::parts_of_images, look_at_classes},
      {"sequences of images", "frames", "train {} --task frames", nullptr, data::parts_of_images, look_at_sequences},
  };
  return all;
}

PartOfData look(const std::string& name, const std::function<void(PartOfData&)>& open) {
  PartOfData part;
  part.name = name;
  try {
    open(part);
  } catch (const Error& error) {
    part.error = error.what();
  }
  return part;
}

// The names of the parts of a source, or "" for one that is whole.
std::vector<std::string> names_of(const Parts& parts, const fs::path& source) {
  if (data::is_scene_source(source)) {
    return {"train", "validation"};
  }
  std::vector<std::string> names;
  for (const data::Part& part : parts) {
    if (!part.name.empty()) {
      names.push_back(part.name);
    }
  }
  return names.empty() ? std::vector<std::string>{""} : names;
}

DataOfKind data_of(const ImageKind& kind, const fs::path& source) {
  DataOfKind result{kind.what, kind.task, fmt::format(fmt::runtime(kind.command), io::shell_word(source.string())), {}};
  std::vector<std::string> names{""};
  try {
    names = names_of(kind.parts(source), source);
  } catch (const Error& error) {
    result.parts.push_back({.name = "", .counts = {}, .classes = {}, .notes = {}, .error = error.what()});
    return result;
  }
  for (const std::string& name : names) {
    result.parts.push_back(look(name, [&](PartOfData& part) { kind.look(source, name, part); }));
  }
  return result;
}

// Images without classes, for which the tasks of `vitrail pretrain` are.
DataOfKind unlabeled_images(const fs::path& source) {
  DataOfKind result{"images", "mae", fmt::format("pretrain mae {}", io::shell_word(source.string())), {}};
  result.parts.push_back(look("", [&](PartOfData& part) {
    const std::unique_ptr<data::Dataset> images = data::open_unlabeled(source);
    part.counts = {{"images", images->size()}};
    part.notes = images->notes();
  }));
  return result;
}

// Whether what was taken for classes are the folders of a layout, in whose `images` are those of another kind.
bool is_layout(const DataOfKind& kind, const std::vector<DataOfKind>& others) {
  return kind.task == "classify" && !others.empty() && std::ranges::any_of(kind.parts, [](const PartOfData& part) {
           return std::ranges::find(part.classes, "images") != part.classes.end();
         });
}

bool can_be_opened(const DataOfKind& kind) {
  return std::ranges::any_of(kind.parts, [](const PartOfData& part) { return part.error.empty(); });
}

// Data of files of texts: a kind of it and what a file has.
struct TextKind {
  std::string_view what;
  std::string_view task;
  bool (*is_of)(const fs::path& file);
  std::vector<PartOfData> (*look)(const fs::path& file);
};

std::vector<PartOfData> look_at_text(const fs::path& file) {
  return {look("", [&](PartOfData& part) {
    const std::string text = text::read_corpus(file.string());
    part.counts = {{"lines", std::ranges::count(text, '\n') + (text.ends_with('\n') ? 0 : 1)},
                   {"bytes", std::ssize(text)}};
  })};
}

std::vector<PartOfData> look_at_labels(const fs::path& file) {
  std::map<std::string, PartOfData> parts;
  try {
    std::map<std::string, std::set<std::string>> labels;
    for (const text::LabelledText& one : text::read_labelled_texts(file)) {
      PartOfData& part = parts[one.split];
      part.counts.resize(1, {"texts", 0});
      ++part.counts[0].second;
      labels[one.split].insert(one.label);
    }
    for (const auto& [split, names] : labels) {
      parts[split].classes = text::sorted_labels({names.begin(), names.end()});
    }
  } catch (const Error& error) {
    parts[""].error = error.what();
  }
  Parts order;
  for (const auto& [split, part] : parts) {
    order.push_back({.name = split, .shown = split});
  }
  data::sort_parts(order);
  std::vector<PartOfData> result;
  for (const data::Part& one : order) {
    result.push_back(std::move(parts[one.name]));
    result.back().name = one.name;
  }
  return result;
}

std::vector<PartOfData> look_at_tags(const fs::path& file) {
  return {look("", [&](PartOfData& part) {
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
      {"texts of classes", "classify-text",
       [](const fs::path& file) { return text::names_table(file) && !data::is_table_of_images(file); }, look_at_labels},
      {"words with labels", "tag", [](const fs::path& file) { return file.extension() == ".conll"; }, look_at_tags},
      {"text", "lm", [](const fs::path& file) { return file.extension() == ".txt"; }, look_at_text},
  };
  return all;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with(".")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// Adds what a file of texts has, if it is one, as a part of that kind that is called `name` where it says no parts.
void add_texts(const fs::path& file, const std::string& name, std::vector<DataOfKind>& all) {
  for (const TextKind& kind : text_kinds()) {
    if (!kind.is_of(file)) {
      continue;
    }
    auto same = std::ranges::find(all, kind.task, &DataOfKind::task);
    if (same == all.end()) {
      all.push_back(
          {kind.what, kind.task, fmt::format("train {} --task {}", io::shell_word(file.string()), kind.task), {}});
      same = all.end() - 1;
    }
    for (PartOfData& part : kind.look(file)) {
      part.name = part.name.empty() || name.empty() ? name + part.name : fmt::format("{}, {}", name, part.name);
      same->parts.push_back(std::move(part));
    }
    return;
  }
}

// Adds texts and their translations: files of one name but for two languages behind it, "train.de" and "train.en".
void add_translations(const std::vector<fs::path>& files, std::vector<DataOfKind>& all) {
  std::map<std::string, std::vector<fs::path>> by_stem;
  for (const fs::path& file : files) {
    const std::string language = file.extension().string();
    if ((language.size() == 3 || language.size() == 4) && !data::part_in_name(file.stem().string()).empty() &&
        !data::holds_images(file) && language != ".txt" && !text::names_table(file)) {
      by_stem[file.stem().string()].push_back(file);
    }
  }
  std::erase_if(by_stem, [](const auto& one) { return one.second.size() != 2; });
  if (by_stem.empty()) {
    return;
  }
  Parts order;
  for (const auto& [stem, pair] : by_stem) {
    order.push_back({.name = stem, .shown = stem});
  }
  data::sort_parts(order);
  const std::vector<fs::path>& first = by_stem.at(order[0].name);
  DataOfKind kind{"texts and translations",
                  "translate",
                  fmt::format("train --task translate --src {} --tgt {}", io::shell_word(first[0].string()),
                              io::shell_word(first[1].string())),
                  {}};
  for (const data::Part& one : order) {
    const std::vector<fs::path>& pair = by_stem.at(one.name);
    kind.parts.push_back(look(one.name, [&](PartOfData& part) {
      const text::ParallelText lines = text::read_parallel_text(pair[0].string(), pair[1].string());
      part.counts = {{"pairs of lines", std::ssize(lines.source)}};
      if (lines.left_out > 0) {
        part.notes.push_back(fmt::format("{} pairs have an empty line", lines.left_out));
      }
    }));
  }
  all.push_back(std::move(kind));
}

// Whether a source is a table whose columns nobody names: one field a line, or no header.
bool tells_no_columns(const fs::path& source) {
  if (!io::is_table_file(source)) {
    return false;
  }
  const std::vector<io::CsvRow> rows = io::read_table(source);
  return rows.empty() ||
         (rows[0].fields.size() == 1 ||
          std::ranges::any_of(rows[0].fields, [](const std::string& field) { return io::is_image_name(field); }));
}

}  // namespace

std::vector<DataOfKind> data_in(const fs::path& source) {
  std::vector<DataOfKind> all;
  std::vector<DataOfKind> failed;
  const bool is_texts = io::is_file(source) &&
                        std::ranges::any_of(text_kinds(), [&](const TextKind& kind) { return kind.is_of(source); });
  for (const ImageKind& kind : image_kinds()) {
    if (kind.has != nullptr ? kind.has(source) : !is_texts) {
      DataOfKind found = data_of(kind, source);
      if (!is_layout(found, all)) {
        (can_be_opened(found) ? all : failed).push_back(std::move(found));
      }
    }
  }
  if (all.empty() && !is_texts) {
    DataOfKind found = unlabeled_images(source);
    (can_be_opened(found) ? all : failed).push_back(std::move(found));
  }
  std::error_code error;
  std::vector<DataOfKind> texts;
  if (is_texts) {
    add_texts(source, "", texts);
  } else if (all.empty() && fs::is_directory(source, error)) {
    const std::vector<fs::path> files = files_in(source);
    add_translations(files, texts);
    for (const fs::path& file : files) {
      add_texts(file, file.filename().string(), texts);
    }
  }
  std::ranges::partition_copy(texts, std::back_inserter(all), std::back_inserter(failed), can_be_opened);
  if (all.empty()) {
    check(!failed.empty(), "'{}' has nothing to learn from", source.string());
    fail("{}", failed.front().parts.front().error);
  }
  return all;
}

std::vector<std::string> tasks_beside_classes(const fs::path& source) {
  std::vector<std::string> tasks;
  std::error_code error;
  if (!fs::exists(source, error) || tells_no_columns(source)) {
    return tasks;
  }
  for (const ImageKind& kind : image_kinds()) {
    if (kind.has != nullptr && kind.has(source)) {
      tasks.emplace_back(kind.task);
    }
  }
  return tasks;
}

}  // namespace vitrail::train
