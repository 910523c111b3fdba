/// \file
/// Where in an image is what a text speaks of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/io/json.h"

namespace vitrail::data {

/// What the texts of an image are about: of each text the boxes, relative to the image's size; none where it is not
/// said.
using TextPlaces = std::vector<std::vector<Box>>;

/// The `boxes` of an annotation, [left, top, width, height] each in pixels, as `vitrail scenes` writes them; none if it
/// has none. Throws Error, naming the place, if they are something else.
std::vector<Box> read_boxes(io::Fields& annotation);

/// The boxes of these objects of a scene, by their places in it, in one of its masks (DrawnScene): in pixels.
std::vector<Box> drawn_boxes(const std::vector<std::uint8_t>& mask, std::int64_t side,
                             const std::vector<std::size_t>& objects);

}  // namespace vitrail::data
