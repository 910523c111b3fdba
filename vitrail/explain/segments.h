/// \file
/// Attention of the class token as a segmentation of an image (DINO: Caron et al. 2021, figures 1 and 3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/explain/attention.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// Where the class token looks in a layer, by head: [H, rows, columns], attention_map() for each; in a model without a
/// class token, the mean over the patches. Class and register tokens are left out. `layer` counts from the end if it is
/// negative. Throws Error if there is no such layer, or if its tokens attend in windows.
Tensor class_token_maps(const Attention& attention, std::int64_t layer = -1);

/// The places of each map [H, rows, columns] that hold `threshold` of its mass, the largest values first: 1, others 0,
/// u8. That is facebookresearch/dino's visualize_attention.py: values are sorted upwards, and those are kept at which
/// their cumulated share exceeds 1 - threshold. Equal values are taken in the order of their places.
Tensor mass_mask(const Tensor& maps, double threshold);

/// `count` colours that are told apart on an image.
std::vector<Color> segment_colors(std::int64_t count);

/// The image with each place of `segments` [rows, columns] i64 in the colour of its number, by `strength` in [0, 1];
/// negative numbers leave it as it is. Places are rectangles of the image.
io::Image paint_segments(const io::Image& image, const Tensor& segments, const std::vector<Color>& colors,
                         float strength = 0.6F);

/// One map of several heads: at each place the head, among those whose mask has it, whose map is largest there relative
/// to its own largest value; -1 if no mask has it. [rows, columns] i64.
Tensor strongest_heads(const Tensor& maps, const Tensor& masks);

}  // namespace vitrail::explain
