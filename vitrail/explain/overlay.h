// Maps drawn over pictures.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vitrail/explain/attention.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

// The picture that a model sees: x [3, H, W] or [1, 3, H, W] with its normalization (x · std + mean) taken back,
// enlarged by a whole factor so that the shorter side has at least `smallest` pixels.
io::Image picture_of(const Tensor& x, std::span<const double> mean, std::span<const double> std,
                     std::int64_t smallest = 224);

// The picture under `map` [rows, columns], which is stretched over it bilinearly and scaled so that its smallest value
// is dark and its largest bright (inferno). `strength` in [0, 1] is the weight of the map's colours. `patch`, if given,
// is framed: one of `grid`, of the map's own if that is {0, 0}.
struct OverlayOptions {
  float strength = 0.6F;
  std::optional<Query> patch;
  nn::Size2 grid = {0, 0};
};
io::Image overlay(const io::Image& picture, const Tensor& map, const OverlayOptions& options = {});

// Rows of pictures of one size, with white gaps. Where a row is shorter than others, the rest of it is white.
io::Image sheet(const std::vector<std::vector<io::Image>>& rows, std::int64_t gap = 6);

}  // namespace vitrail::explain
