/// \file
/// What files of texts hold, by the tasks that learn from them.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "vitrail/train/sources/data_kinds.h"

namespace vitrail::train {

/// Whether a file is one of texts by its name, and is no table of images.
bool is_file_of_texts(const std::filesystem::path& file);
/// What a file of texts holds; one whose name says nothing is a text to learn as it stands.
DataOfKind texts_of_file(const std::filesystem::path& file);
/// What the files of texts in a folder hold, the translations first. Each file is a part.
std::vector<DataOfKind> texts_of_folder(const std::filesystem::path& folder);

}  // namespace vitrail::train
