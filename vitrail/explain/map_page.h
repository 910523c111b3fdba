/// \file
/// Maps of features that can be looked at: a picture, and a page to move about in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// N points of a map, with what is shown of each.
struct MapPoints {
  Tensor coordinates;                 ///< [N, 2] f32
  std::vector<std::string> names;     ///< [N], or empty
  std::vector<std::int64_t> labels;   ///< [N]: a class, or a negative number; or empty
  std::vector<std::string> classes;   ///< their names
  std::vector<io::Image> thumbnails;  ///< [N] of one square size, or empty
};

/// The map as an image of size × size pixels and a legend: a thumbnail in the colour of its class, or a square, for
/// each point. Throws Error if the parts of `points` do not fit each other.
io::Image draw_map(const MapPoints& points, std::int64_t size = 1200);

/// Writes map.png, index.html, and thumbnails.png if there are thumbnails, into a folder. The page shows the points at
/// their places, in the colours of their classes; it can be moved, enlarged, and shows what the pointer is on. It takes
/// nothing from elsewhere.
void write_map_page(const std::filesystem::path& folder, const std::string& title, const std::string& lead,
                    const MapPoints& points);

}  // namespace vitrail::explain
