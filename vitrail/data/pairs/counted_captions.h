/// \file
/// Captions that say how many objects of each class are in an image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/pairs/captioned_images.h"

namespace vitrail::data {

/// Numbers of objects, in the order of their classes, in words: "two platelets, eleven red cells and one white cell".
/// Numbers beyond twelve are digits, classes without an object are left out, and without any it is "nothing". Classes
/// are called as they are, in the plural with an s behind; those of BCCD and of scenes of cells are told by the words
/// above.
std::string caption_of_counts(const std::vector<std::int64_t>& counts, const std::vector<std::string>& classes);

/// The numbers that such a caption tells, whatever the order of its classes; nothing if it is no such caption, or names
/// a class twice. Capital letters change nothing.
std::optional<std::vector<std::int64_t>> counts_of_caption(std::string_view caption,
                                                           const std::vector<std::string>& classes);

/// Images with boxes (open_boxed_images()), of which each has one such caption; objects that stand for a crowd are not
/// counted.
CaptionedImages counted_captions(const std::filesystem::path& source, const std::string& split = "",
                                 bool skip_broken = false);

}  // namespace vitrail::data
