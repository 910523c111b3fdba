/// \file
/// Whether what a program writes would lie in the data that it reads.
#pragma once

#include <filesystem>

namespace vitrail::data {

/// Whether a path is a folder, or lies in it. Neither the path nor the folder need exist.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Throws Error if what is written to `output` would be read as images of `source`, a folder: if it lies in one of its
/// parts (parts_of_images()), or in a source without parts.
void check_beside_images(const std::filesystem::path& output, const std::filesystem::path& source);

}  // namespace vitrail::data
