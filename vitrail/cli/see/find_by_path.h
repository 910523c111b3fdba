/// \file
/// Images that are named by other paths elsewhere.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "vitrail/cli/images.h"

namespace vitrail::cli {

/// Finds for each image which of the paths `named` means it: of those with its file name the one that shares the most
/// folders with it, from the file upwards, if it shares as many with no other image. Returns indices by the images'
/// paths, and adds the paths that may mean several to `unclear`.
std::map<std::string, std::size_t> find_by_path(const std::vector<NamedImage>& images,
                                                const std::vector<std::string>& named,
                                                std::vector<std::string>& unclear);

}  // namespace vitrail::cli
