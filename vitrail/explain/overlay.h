/// \file
/// Maps drawn over images.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/explain/attention.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// The image that a model sees: x [C, H, W] or [1, C, H, W], C = 3 or 1, without its normalization (x · std + mean),
/// enlarged by zoom_to_be_seen(). Throws Error for another shape.
io::Image image_of(const Tensor& x, std::span<const double> mean, std::span<const double> std,
                   std::int64_t smallest = 224);

/// How overlay() draws a map.
struct OverlayOptions {
  float strength = 0.6F;       ///< weight of the map's colours, in [0, 1]
  std::optional<Query> patch;  ///< the patch to frame, if any
  nn::Size2 grid = {0, 0};     ///< the grid that `patch` lies on; {0, 0}: that of the map
};
/// Draws `map` [rows, columns] over the image: stretched to its size bilinearly, and scaled so that the smallest value
/// is dark and the largest bright (inferno). Throws Error if the patch to frame is not on the grid.
io::Image overlay(const io::Image& image, const Tensor& map, const OverlayOptions& options = {});

/// Arranges images of one size in rows, with white gaps of `gap` pixels. Where a row is shorter than others, the rest
/// of it is white. Throws Error if there are no images or their sizes differ.
io::Image sheet(const std::vector<std::vector<io::Image>>& rows, std::int64_t gap = 6);

/// What stands beside the rows and above the columns of a sheet: a text for each, or none at all.
struct SheetLabels {
  std::vector<std::string> rows;
  std::vector<std::string> columns;
};
/// A sheet with labels, for which images that are narrower than a label are enlarged by an integer factor, or get a
/// white margin where they would be higher than 2048 pixels. Its letters
/// are as large as the columns permit, up to a size that is readable where the whole sheet is shown about 1000 pixels
/// wide. Throws Error as the other sheet() does, and if there are not as many labels as rows or columns.
io::Image sheet(const std::vector<std::vector<io::Image>>& rows, const SheetLabels& labels, std::int64_t gap = 6);

}  // namespace vitrail::explain
