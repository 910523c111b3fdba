/// \file
/// Images with captions, for a model that learns to write them.
#pragma once

#include <filesystem>
#include <string>

#include "vitrail/data/pairs/text_pairs.h"

namespace vitrail::data {

/// Opens images with captions. `source` is one of those of open_text_pairs(), or a data set with classes, whose names
/// (of a folder, or what a .csv of path,label says of an image) are then the captions. `split` chooses a part under the
/// names that names_of_split() knows: a subfolder train/, validation/ … of a folder of pairs, or what open_dataset()
/// takes; "" and, where there are no parts, that of training are the whole. Throws Error, naming the place, if there is
/// no such part, or a file does not fit its layout.
TextPairs open_captioned_images(const std::filesystem::path& source, const std::string& split = "");

}  // namespace vitrail::data
