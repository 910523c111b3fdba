/// \file
/// The parts that a folder of images has: subfolders, files, shards, and the binary files of CIFAR and MNIST. They are
/// not for use outside of vitrail/data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/data/sources/parts.h"
#include "vitrail/data/sources/sources.h"

namespace vitrail::data {

/// The parts that a folder has, also under the name `split`. The path of one in shards or binary files is that of the
/// first of them.
Parts parts_in(const std::filesystem::path& folder, const std::string& split = "");

/// Lists the images of one of parts_in().
Listing list_part(const std::filesystem::path& folder, const Part& part, const ListOptions& how);

/// Lists the images below a folder, or, if there are none and it has no parts, those of the shards that lie in it. Of
/// one that `vitrail scenes` has written, those without labels are the pictures alone, and not their masks.
Listing list_images(const std::filesystem::path& folder, const ListOptions& how);

/// Lists the images of a file, of the part `split` unless it is "".
Listing list_file(const std::filesystem::path& path, const std::string& split, const ListOptions& how);

/// The files of CIFAR or MNIST in a folder that belong to one part: "train" if `training`, otherwise "test".
std::vector<std::filesystem::path> binary_files(const std::filesystem::path& folder, bool training);
Listing list_binary(const std::vector<std::filesystem::path>& files, bool labeled);

}  // namespace vitrail::data
