/// \file
/// Images of one number a pixel, such as masks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrail::io {

/// The samples [height, width] as a grayscale PNG file in memory. Throws Error unless there are width · height of them,
/// one at least.
std::vector<std::uint8_t> encode_gray_png(std::span<const std::uint8_t> samples, std::int64_t width,
                                          std::int64_t height);

}  // namespace vitrail::io
