/// \file
/// Patch tokens as images: colours, and lines between those that match.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/explain/patch_tokens.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// Coordinates [N, 3] along three principal components as red, green and blue in 0 … 1, [N, 3]: each column is scaled
/// so that its values from the 1st to the 99th percentile fill the range.
Tensor component_colors(const Tensor& coordinates);

/// An image of colours [rows, columns, 3] in 0 … 1, each a rectangle of it.
io::Image color_patches(const Tensor& colors, std::int64_t width, std::int64_t height);

/// Two images side by side, and lines between the middles of the patches that match, in colours of their own. Patches
/// are counted row by row on grids [rows, columns].
io::Image draw_matches(const io::Image& first, const nn::Size2& first_grid, const io::Image& second,
                       const nn::Size2& second_grid, const std::vector<Match>& matches);

}  // namespace vitrail::explain
