/// \file
/// What a source of data holds, by the tasks that learn from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrail::train {

/// A part of data of one kind.
struct PartOfData {
  std::string name = {};  ///< "train", "validation" …; "": the source is whole
  std::vector<std::pair<std::string, std::int64_t>> counts = {};  ///< of what there is, in the plural: {"images", 205}
  std::vector<std::string> classes = {};                          ///< the names of classes, labels or answers
  std::vector<std::string> notes = {};  ///< what a user may not expect, in sentences without a full stop
  std::string error = {};               ///< why this part cannot be opened; "" if it can
};
/// A part as `open` finds it; if that throws Error, with its message.
PartOfData part_of_data(const std::string& name, const std::function<void(PartOfData&)>& open);

/// Data of one kind.
struct DataOfKind {
  std::string_view what;          ///< "images with boxes"
  std::string_view task;          ///< that learns from them: TaskKind::name, "detect"
  std::string command;            ///< that does, without the program's name; "" if none of the parts can be opened
  std::vector<PartOfData> parts;  ///< at least one
};
/// Whether one of its parts can be opened.
bool can_be_opened(const DataOfKind& data);

/// All that a source holds: images with classes, boxes, captions or questions, sequences, texts. It is opened, but no
/// image is decoded. `source` is one of those that tasks take as their data, or a folder of files of texts. What is
/// recognised and cannot be opened is among it, with the reason. Throws Error, with that reason, if nothing can.
std::vector<DataOfKind> data_in(const std::filesystem::path& source);

/// The tasks that a source has boxes, captions or questions for, by its names and the headers of its tables: "detect",
/// "caption", "vqa".
std::vector<std::string> tasks_beside_classes(const std::filesystem::path& source);

/// Whether most of so many items have a label of their own: no classes, but numbers, or texts that belong to others.
bool most_labels_come_once(std::int64_t labels, std::int64_t items);

/// A path as it is given to the program in a shell.
std::string argument_of(const std::filesystem::path& path);

}  // namespace vitrail::train
