/// \file
/// Positional encodings as images.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/explain/attention.h"
#include "vitrail/io/image.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::explain {

// How close two places are to a model according to its positions. Each function returns, for patches on a grid of rows
// x columns, the map [rows, columns] of how close all places are to `place`.

/// For absolute positions [N, D]: the cosine of the angle between the vectors that are added at the two places.
Tensor similarity_map(const Tensor& positions, const nn::Size2& grid, const Query& place);
/// For relative positions: the bias that `head` adds to the score of the query patch at `place` and every key patch. It
/// is taken from `bias` [1, H, N, N], where `prefix` tokens precede the patches; all_heads takes the mean of the heads.
Tensor bias_map(const Tensor& bias, const nn::Size2& grid, std::int64_t prefix, std::int64_t head, const Query& place);
/// For rotary positions: the mean cosine of the differences between the rotation angles of `head` at the two places.
/// That is the score of a query and a key of ones after their rotation, relative to the score before.
Tensor rotation_map(const ops::Rotation& rotation, const nn::Size2& grid, std::int64_t head, const Query& place);

/// The map in colours (viridis) from `low` to `high`, with each place as a square of `cell` pixels.
io::Image map_image(const Tensor& map, float low, float high, std::int64_t cell);

/// What a model knows about where the patches of a grid lie.
struct ModelPositions {
  nn::Size2 grid = {};
  Tensor added;                                ///< [N, D], what is added to the patches; undefined: nothing
  std::vector<models::ScorePositions> blocks;  ///< what the scores of each block have
  std::int64_t num_heads = 0;
  /// Whether blocks have positions of their own.
  bool in_scores() const;
};
ModelPositions positions_of(const models::VisionTransformer& model, const nn::Size2& grid);

/// An image of all that a model knows about places. With absolute positions: above, the table itself (a row per patch,
/// a column per element of the vectors); below, for every patch the map of its similarities, laid out as the patches
/// are. With relative and rotary positions: one row for the patch in the middle and one for the patch in the upper left
/// corner, a column for each head of block `layer`. Captions and labels say so. Throws Error if there is no such block
/// or the model has no positions.
io::Image position_image(const ModelPositions& positions, std::int64_t layer);

}  // namespace vitrail::explain
