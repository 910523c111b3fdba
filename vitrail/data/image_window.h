/// \file
/// Windows on images.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vitrail/data/image_ops.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

/// A window on an image, which may reach beyond it, and whether it is mirrored. It crops, pads and flips without
/// copying.
struct ImageWindow {
  const io::Image* image = nullptr;
  std::int64_t x = 0;
  std::int64_t y = 0;
  bool reflect = false;  ///< outside of the image, its mirror image instead of `fill`
  Color fill = {0, 0, 0};
  bool hflip = false;
  bool vflip = false;
};

/// The position that `i` has in a row of `size` pixels which is mirrored at both ends without repeating the end pixels.
inline std::int64_t reflected(std::int64_t i, std::int64_t size) {
  if (size == 1) {
    return 0;
  }
  const std::int64_t period = 2 * (size - 1);
  i = ((i % period) + period) % period;
  return i < size ? i : period - i;
}

/// Calls put(x, y, rgb) for each pixel of the window at width × height.
template <class Put>
void for_each_pixel(const ImageWindow& window, std::int64_t width, std::int64_t height, Put put) {
  const io::Image& image = *window.image;
  const std::int64_t step = window.hflip ? -1 : 1;
  for (std::int64_t y = 0; y < height; ++y) {
    std::int64_t from_y = window.y + (window.vflip ? height - 1 - y : y);
    std::int64_t from_x = window.x + (window.hflip ? width - 1 : 0);
    if (window.reflect) {
      from_y = reflected(from_y, image.height);
      for (std::int64_t x = 0; x < width; ++x, from_x += step) {
        put(x, y, image.at(reflected(from_x, image.width), from_y));
      }
      continue;
    }
    const bool row_inside = from_y >= 0 && from_y < image.height;
    for (std::int64_t x = 0; x < width; ++x, from_x += step) {
      put(x, y, row_inside && from_x >= 0 && from_x < image.width ? image.at(from_x, from_y) : window.fill.data());
    }
  }
}

/// The pixels of the window as an image.
inline io::Image copy_of(const ImageWindow& window, std::int64_t width, std::int64_t height) {
  io::Image result(width, height);
  for_each_pixel(window, width, height, [&](std::int64_t x, std::int64_t y, const std::uint8_t* rgb) {
    std::copy_n(rgb, 3, result.at(x, y));
  });
  return result;
}

}  // namespace vitrail::data
