/// \file
/// Image resizing with Pillow's pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/io/image.h"

namespace vitrail::data {

/// Pillow's resampling filters. All but nearest are antialiased: when an image is reduced, the filter is widened by the
/// scale.
enum class Interpolation { nearest, box, bilinear, hamming, bicubic, lanczos };

/// The names of all filters: "nearest", "bilinear", "bicubic" and others.
const std::vector<std::string>& interpolation_names();
/// The filter of timm's name: "bilinear", "bicubic", … Throws Error, listing the names, if there is none such.
Interpolation interpolation_named(const std::string& name);

/// A rectangle of pixels inside an image.
struct Region {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// The image at width × height pixels, pixel for pixel Pillow 13's `Image.resize((width, height), interpolation)`: a
/// horizontal and then a vertical pass of 8-bit fixed-point sums (libImaging/Resample.c), where a pass that changes
/// nothing is left out; the vertical pass comes first if the image loses more than twice as many rows as columns.
/// Throws Error if a size is not positive.
io::Image resize(const io::Image& image, std::int64_t width, std::int64_t height, Interpolation interpolation);
/// The part `region` of the image at width × height pixels, as `image.crop(region).resize(…)`: pixels outside of the
/// region do not contribute.
io::Image resize(const io::Image& image, const Region& region, std::int64_t width, std::int64_t height,
                 Interpolation interpolation);
/// The part `window` of the image at width × height pixels, as `resize(…).crop(window)`. What lies outside is not
/// computed.
io::Image resize_window(const io::Image& image, std::int64_t width, std::int64_t height, const Region& window,
                        Interpolation interpolation);

}  // namespace vitrail::data
