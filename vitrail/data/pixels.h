/// \file
/// Pillow's arithmetic on single samples. It is not for use outside of vitrail/data.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vitrail::data {

/// The ITU-R 601-2 luma of an RGB pixel, in 16-bit fixed point.
inline int luma(const std::uint8_t* rgb) { return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16; }

/// Pillow's Image.blend(): from `a` (alpha 0) to `b` (alpha 1), truncated rather than rounded.
inline std::uint8_t blend(int a, int b, float alpha) {
  const float value = static_cast<float>(a) + alpha * static_cast<float>(b - a);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

}  // namespace vitrail::data
