/// \file
/// Tables of images, told apart from other tables.
#pragma once

#include <filesystem>

namespace vitrail::data {

/// Whether a file is a table of images: a `.csv` or `.tsv` whose first line has the name of an image that is there, or
/// names a column of images beside one of what is known of them.
bool is_table_of_images(const std::filesystem::path& file);

}  // namespace vitrail::data
