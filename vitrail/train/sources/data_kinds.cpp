#include "vitrail/train/sources/data_kinds.h"

#include <algorithm>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/data/sequences/sequences.h"
#include "vitrail/data/sets/sets.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/csv.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/sources/text_data_kinds.h"
#include "vitrail/train/vqa/answers.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// A part that is to be looked at.
struct Wanted {
  fs::path source;
  std::string split;
  std::vector<std::string> classes;  // those of the part for training, which other parts must have; none: any

  bool for_training() const { return split.empty() || data::is_of_part(split, "train"); }
  // Those of `all` classes that the part has: `for_each_label` calls what it is given with the label of each item.
  std::vector<std::string> of_its_own(
      const std::vector<std::string>& all,
      const std::function<void(const std::function<void(std::int64_t)>&)>& for_each_label) const {
    std::vector<bool> seen(all.size(), for_training());
    for_each_label([&](std::int64_t label) {
      if (label >= 0) {
        seen[static_cast<std::size_t>(label)] = true;
      }
    });
    std::vector<std::string> own;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (seen[i]) {
        own.push_back(all[i]);
      }
    }
    return own;
  }
};

// A kind of data about images, which one source may hold beside others.
struct ImageKind {
  std::string_view what;
  std::string_view task;
  bool (*has)(const fs::path& source);  // by names and headers; null: opening alone tells
  data::Parts (*parts)(const fs::path& source);
  void (*look)(const Wanted& wanted, PartOfData& part);
  // What each scene has that is drawn when it is asked for, so that none need be drawn to count them.
  std::string_view of_scenes = {};
  std::int64_t data::SceneFolder::*of_a_scene = nullptr;
};

// Whether a source draws scenes when they are asked for that have captions and questions: neither those of cells, nor
// images of the classes of a task.
bool draws_described_scenes(const fs::path& source) {
  if (!data::is_scene_source(source)) {
    return false;
  }
  const data::SceneFolder what = data::read_scene_source(source);
  return what.scenes.task == data::SceneTask::none && what.style == data::SceneStyle::shapes;
}

bool has_captions(const fs::path& source) { return draws_described_scenes(source) || data::has_captions(source); }
bool has_questions(const fs::path& source) { return draws_described_scenes(source) || data::has_questions(source); }

void look_at_boxes(const Wanted& wanted, PartOfData& part) {
  const data::BoxedImages boxed =
      data::open_boxed_images(wanted.source, {.split = wanted.split, .classes = wanted.classes});
  part.counts = {{"images", boxed.images->size()}, {"boxes", boxed.count()}};
  part.classes = wanted.of_its_own(boxed.classes, [&](const auto& take) {
    for (const std::vector<data::BoxedObject>& objects : boxed.objects) {
      std::ranges::for_each(objects, [&](const data::BoxedObject& object) { take(object.label); });
    }
  });
  part.notes = boxed.notes;
}

void look_at_captions(const Wanted& wanted, PartOfData& part) {
  const data::CaptionedImages pairs = data::open_captioned_images(wanted.source, {.split = wanted.split});
  part.counts = {{"images", pairs.images->size()}, {"captions", pairs.count()}};
  part.notes = data::notes_of({pairs.images.get()});
}

void look_at_questions(const Wanted& wanted, PartOfData& part) {
  const data::ImageQuestions asked = data::open_questions_of(wanted.source, wanted.split);
  part.counts = {{"images", asked.images->size()}, {"questions", asked.count()}};
  part.classes = frequent_answers(asked, 0);
  part.notes = data::notes_of({asked.images.get()});
}

void look_at_classes(const Wanted& wanted, PartOfData& part) {
  const std::unique_ptr<data::Dataset> images = data::open_dataset(
      wanted.source, {.split = wanted.split, .classes = wanted.classes, .allow_single_class = !wanted.for_training()});
  part.counts = {{"images", images->size()}};
  part.classes = wanted.of_its_own(images->classes(), [&](const auto& take) {
    for (std::int64_t i = 0; i < images->size(); ++i) {
      take(images->label(i));
    }
  });
  part.notes = data::notes_of({images.get()});
}

bool is_name_of_part(const std::string& name) {
  return data::is_of_part(name, "train") || data::is_of_part(name, "validation") || data::is_of_part(name, "test");
}

void look_at_sequences(const Wanted& wanted, PartOfData& part) {
  const data::Sequences found =
      data::open_sequences(wanted.source, {.split = wanted.split, .classes = wanted.classes, .frames = {}});
  check(std::ranges::any_of(found.sequences, [](const data::Sequence& one) { return one.frames.size() > 1; }),
        "each sequence has one frame");
  check(!wanted.for_training() || found.classes.size() > 1, "all sequences are of one class");
  // A folder of shards reads like classes, whose sequences are the folders inside of them.
  check(std::ranges::none_of(found.classes, [](const std::string& name) { return io::is_tar_name(name); }),
        "there are shards");
  check(!std::ranges::all_of(found.classes, is_name_of_part), "its folders are parts");
  part.counts = {{"sequences", std::ssize(found.sequences)}, {"frames", found.images->size()}};
  part.classes = wanted.of_its_own(found.classes, [&](const auto& take) {
    std::ranges::for_each(found.sequences, [&](const data::Sequence& one) { take(one.label); });
  });
  part.notes = found.notes;
}

data::Parts parts_of_classes(const fs::path& source) {
  return io::is_tar_name(source) && io::is_file(source) ? data::parts_of_archive(source)
                                                        : data::parts_of_images(source);
}

const ImageKind classes_of_images = {"images of classes", "classify", nullptr, parts_of_classes, look_at_classes};
const ImageKind sequences_of_images = {"sequences of images", "frames", nullptr, data::parts_of_images,
                                       look_at_sequences};

// The kinds that a source is seen to have before it is opened.
const std::vector<ImageKind>& recognised_kinds() {
  static const std::vector<ImageKind> all = {
      {"images with boxes", "detect", data::has_boxes, data::parts_of_boxes, look_at_boxes},
      {"images with captions", "caption", has_captions, data::parts_of_pairs, look_at_captions, "captions",
       &data::SceneFolder::captions},
      {"questions about images", "vqa", has_questions, data::parts_of_questions, look_at_questions, "questions",
       &data::SceneFolder::questions},
  };
  return all;
}

// The names of the parts of a source, each once; "" for one that is whole.
std::vector<std::string> names_of(const data::Parts& parts, const fs::path& source) {
  if (data::is_scene_source(source)) {
    return {"train", "validation"};
  }
  std::vector<std::string> names;
  for (const data::Part& part : parts) {
    if (!part.name.empty() && std::ranges::find(names, part.name) == names.end()) {
      names.push_back(part.name);
    }
  }
  return names.empty() ? std::vector<std::string>{""} : names;
}

// Looks at a part: of drawn scenes of a recognised kind, by what their source says.
void look_at(const ImageKind& kind, const Wanted& wanted, PartOfData& part) {
  if (kind.has == nullptr || !data::is_scene_source(wanted.source)) {
    return kind.look(wanted, part);
  }
  const data::SceneFolder scenes = data::read_scene_source(wanted.source);
  const std::int64_t count = wanted.for_training() ? scenes.count : scenes.validation_count();
  part.counts = {{"images", count}};
  if (kind.of_a_scene != nullptr) {
    part.counts.emplace_back(kind.of_scenes, count * scenes.*kind.of_a_scene);
  }
}

DataOfKind data_of(const ImageKind& kind, const fs::path& source) {
  DataOfKind result{kind.what, kind.task, "", {}};
  data::Parts parts;
  const PartOfData whole = part_of_data("", [&](PartOfData&) { parts = kind.parts(source); });
  if (!whole.error.empty()) {
    result.parts.push_back(whole);
    return result;
  }
  std::vector<std::string> classes;  // of the part for training, which comes before others
  bool can_train = false;
  for (const std::string& name : names_of(parts, source)) {
    Wanted wanted{source, name, {}};
    if (!wanted.for_training() && kind.task != "vqa") {
      wanted.classes = classes;
    }
    result.parts.push_back(part_of_data(name, [&](PartOfData& part) { look_at(kind, wanted, part); }));
    if (wanted.for_training() && !can_train) {
      classes = result.parts.back().classes;
      can_train = result.parts.back().error.empty();
    }
  }
  if (can_train) {
    // Of what has no part but for training, the tasks hold a share out.
    const bool unreadable = std::ranges::any_of(result.parts, [](const PartOfData& part) {
      return !part.error.empty() && data::is_of_part(part.name, "validation");
    });
    const bool validates = data::is_scene_source(source) || data::is_all_for_training(parts) ||
                           (data::has_part(parts, "validation") && !unreadable);
    result.command = fmt::format("train {}{}{}", argument_of(source),
                                 kind.task == "classify" ? "" : fmt::format(" --task {}", kind.task),
                                 validates || kind.task == "frames" ? "" : " --val-split ''");
  }
  return result;
}

// Images without classes, for which the tasks of `vitrail pretrain` are.
DataOfKind unlabeled_images(const fs::path& source) {
  DataOfKind result{"images", "mae", "", {}};
  result.parts.push_back(part_of_data("", [&](PartOfData& part) {
    const std::unique_ptr<data::Dataset> images = data::open_unlabeled(source);
    part.counts = {{"images", images->size()}};
    part.notes = data::notes_of({images.get()});
  }));
  result.command = can_be_opened(result) ? fmt::format("pretrain mae {}", argument_of(source)) : "";
  return result;
}

// Whether what was taken for classes are the folders of a layout, in whose `images` are those of another kind.
bool is_layout(const DataOfKind& kind) {
  return std::ranges::any_of(kind.parts, [](const PartOfData& part) {
    return std::ranges::find(part.classes, "images") != part.classes.end();
  });
}

// Adds what images a source has, recognised or not.
void add_images(const fs::path& source, std::vector<DataOfKind>& all) {
  for (const ImageKind& kind : recognised_kinds()) {
    if (kind.has(source)) {
      all.push_back(data_of(kind, source));
    }
  }
  // The ending of a single file does not tell these kinds apart.
  if (io::is_file(source) && std::ranges::any_of(all, can_be_opened)) {
    std::erase_if(all, [](const DataOfKind& kind) { return !can_be_opened(kind); });
  }
  const bool recognised = !all.empty();
  DataOfKind classes = data_of(classes_of_images, source);
  DataOfKind sequences = data_of(sequences_of_images, source);
  const bool moving = can_be_opened(sequences);
  // Why there are no classes is told where nothing else is there.
  if (can_be_opened(classes) ? !(recognised && is_layout(classes)) : !(recognised || moving)) {
    if (!classes.command.empty() && data::is_all_for_training(data::parts_of_images(source)) &&
        !tasks_beside_classes(source).empty()) {
      classes.command += " --val-split ''";  // nothing is held out where it may be a layout of something else
    }
    all.push_back(std::move(classes));
  }
  if (moving) {
    all.push_back(std::move(sequences));
  }
  if (std::ranges::none_of(all, can_be_opened)) {
    if (DataOfKind images = unlabeled_images(source); can_be_opened(images)) {
      all.push_back(std::move(images));
    }
  }
}

// Whether a folder has neither folders nor files in which images may be.
bool has_no_images(const fs::path& folder) {
  std::error_code error;
  return std::ranges::none_of(fs::directory_iterator(folder, error), [&](const fs::directory_entry& entry) {
    return entry.is_directory(error) || io::is_image_name(entry.path()) ||
           (data::holds_images(entry.path()) && !is_file_of_texts(entry.path()));
  });
}

// Adds the texts of a folder, in place of the classes of images that it seemed to lack.
void add_texts(const fs::path& folder, std::vector<DataOfKind>& all) {
  std::vector<DataOfKind> texts = texts_of_folder(folder);
  if (has_no_images(folder) && std::ranges::any_of(texts, can_be_opened)) {
    std::erase_if(all, [](const DataOfKind& kind) { return kind.task == classes_of_images.task; });
  }
  std::ranges::move(texts, std::back_inserter(all));
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

// Whether one of the first two lines of a table names an image, whatever its columns are called.
bool names_images(const fs::path& source) {
  if (!io::is_table_file(source)) {
    return false;
  }
  const std::vector<io::CsvRow> rows = io::read_table(source);
  return std::any_of(
      rows.begin(), rows.begin() + std::min<std::ptrdiff_t>(2, std::ssize(rows)), [](const io::CsvRow& row) {
        return std::ranges::any_of(row.fields, [](const std::string& field) { return io::is_image_name(field); });
      });
}

// Sets of a file, or that are drawn when they are asked for.
DataOfKind sets_of(const fs::path& source) {
  DataOfKind result{"sets", "set2set", fmt::format("train {} --task set2set", argument_of(source)), {}};
  if (!data::is_set_source(source)) {
    result.parts.push_back(part_of_data("", [&](PartOfData& part) {
      const data::Sets sets = data::open_sets(source, "");
      part.counts = {{"sets", sets.count}};
      part.classes = sets.labels;
    }));
    result.command = can_be_opened(result) ? result.command + " --val-split ''" : "";
    return result;
  }
  for (const std::string split : {"train", "validation"}) {
    result.parts.push_back({.name = split, .counts = {{"sets", data::open_sets(source, split).count}}});
  }
  return result;
}

// Whether a file may be one of texts, by its first bytes.
bool looks_like_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string begin(4096, '\0');
  stream.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  return !begin.empty() && !begin.starts_with("GGUF") && begin.find('\0') == std::string::npos;
}

}  // namespace

PartOfData part_of_data(const std::string& name, const std::function<void(PartOfData&)>& open) {
  PartOfData part{.name = name};
  try {
    open(part);
  } catch (const Error& error) {
    part = {.name = name, .error = error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    part = {.name = name, .error = error.what()};
  }
  return part;
}

bool can_be_opened(const DataOfKind& data) {
  return std::ranges::any_of(data.parts, [](const PartOfData& part) { return part.error.empty(); });
}

std::string argument_of(const fs::path& path) {
  const std::string word = path.string();
  return io::shell_word(word.starts_with("-") ? "./" + word : word);
}

std::vector<DataOfKind> data_in(const fs::path& source) {
  std::vector<DataOfKind> all;
  if (data::is_set_source(source) || data::is_file_of_sets(source)) {
    all.push_back(sets_of(source));
    return all;
  }
  std::error_code error;
  const bool is_file = fs::is_regular_file(source, error);
  const bool is_json = is_file && source.extension() == ".json";  // COCO's, an index of shards, or texts
  const bool is_text = is_file && !is_json && !io::is_image_name(source) &&
                       (is_file_of_texts(source) || (!data::holds_images(source) && looks_like_text(source)));
  if (!is_text) {
    add_images(source, all);
  }
  const bool labeled =
      std::ranges::any_of(all, [](const DataOfKind& kind) { return kind.task != "mae" && can_be_opened(kind); });
  if (is_text || (is_json && !labeled)) {
    all.push_back(texts_of_file(source));
  } else if (!labeled && fs::is_directory(source, error)) {
    add_texts(source, all);
  }
  if (is_text && std::ranges::none_of(all, can_be_opened) && names_images(source)) {
    all.clear();
    add_images(source, all);
  }
  if (std::ranges::none_of(all, can_be_opened)) {
    fail("{}", all.front().parts.front().error);
  }
  if (is_json) {  // of which one reading is right
    std::erase_if(all, [](const DataOfKind& kind) { return !can_be_opened(kind); });
  }
  return all;
}

bool most_labels_come_once(std::int64_t labels, std::int64_t items) { return labels > 20 && 4 * labels > 3 * items; }

std::vector<std::string> tasks_beside_classes(const fs::path& source) {
  std::vector<std::string> tasks;
  std::error_code error;
  if (!fs::exists(source, error) || tells_no_columns(source)) {
    return tasks;
  }
  const bool is_file = io::is_file(source);  // whose ending does not tell what is in it
  if (is_file && io::is_tar_name(source) && data::holds_samples(io::Tar::open(source))) {
    return tasks;  // whose classes are said, and not guessed by folders
  }
  for (const ImageKind& kind : recognised_kinds()) {
    if (kind.has(source) && (!is_file || can_be_opened(data_of(kind, source)))) {
      tasks.emplace_back(kind.task);
    }
  }
  if (io::is_table_file(source) && tasks.empty() && is_file_of_texts(source)) {
    if (const DataOfKind texts = texts_of_file(source); can_be_opened(texts)) {
      tasks.emplace_back(texts.task);
    }
  }
  return tasks;
}

}  // namespace vitrail::train
