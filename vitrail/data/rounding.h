/// \file
/// Rounding as in the reference implementations, so that sizes and weights equal theirs. It is not for use outside of
/// vitrail/data.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

namespace vitrail::data {

/// Python's round(): halves go to the even neighbour.
inline std::int64_t round_half_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

/// Pillow's rounding in C: adds a half and truncates. Below -0.5 that is not the nearest number, in Pillow as here.
inline std::int64_t round_as_pillow(double x) { return static_cast<std::int64_t>(x + 0.5); }  // NOLINT

/// Where a centred window of `target` pixels begins in `size` pixels (torchvision's center_crop, timm's
/// center_crop_or_pad).
inline std::int64_t center_offset(std::int64_t size, std::int64_t target) {
  return target > size ? -((target - size) / 2) : round_half_even(static_cast<double>(size - target) / 2.0);
}

/// The width and height to which torchvision's Resize brings an image whose shorter side becomes `side`.
inline std::pair<std::int64_t, std::int64_t> shorter_side_size(std::int64_t width, std::int64_t height,
                                                               std::int64_t side) {
  const auto longer = [&](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<double>(side * a) / static_cast<double>(b));
  };
  return width <= height ? std::pair(side, longer(height, width)) : std::pair(longer(width, height), side);
}

}  // namespace vitrail::data
