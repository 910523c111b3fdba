// Positional codes as pictures.
#pragma once

#include <cstdint>

#include "vitrail/explain/attention.h"
#include "vitrail/io/image.h"
#include "vitrail/models/vit.h"

namespace vitrail::explain {

// How near two places are to a model, as its positions have it, for patches on a grid of rows x columns: a map
// [rows, columns] of all places for one of them.
//
// Absolute positions: the cosine of the angle between the vectors that are added to the two.
Tensor similarity_map(const Tensor& positions, const nn::Size2& grid, const Query& place);
// Relative ones: the bias [1, H, N, N] that `head` adds to the score of the patch that looks; `prefix` tokens are in
// front. all_heads: the mean of the heads.
Tensor bias_map(const Tensor& bias, const nn::Size2& grid, std::int64_t prefix, std::int64_t head, const Query& place);
// Rotary ones: the mean cosine of the angles between the two, which is what the score of two rows of ones becomes when
// they are turned, as a part of their length.
Tensor rotation_map(const ops::Rotation& rotation, const nn::Size2& grid, std::int64_t head, const Query& place);

// A map in colours (viridis) from `low` to `high`, each place a square of `cell` pixels.
io::Image map_picture(const Tensor& map, float low, float high, std::int64_t cell);

// All that `model` knows about places in one picture. With absolute positions: for every patch the map of its
// similarities, laid out as the patches are, and above the table itself (a row a patch, a column an element of
// the vectors). With relative and rotary ones: a row for the patch in the middle and one for that in the upper left
// corner, a column for each head of block `layer`. Error if the model has no positions.
io::Image position_picture(const models::VisionTransformer& model, const nn::Size2& grid, std::int64_t layer);

}  // namespace vitrail::explain
