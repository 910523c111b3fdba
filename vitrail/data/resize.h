// Pictures at another size, with Pillow's pixels.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/io/image.h"

namespace vitrail::data {

// Pillow's resampling filters. All but nearest are antialiased: when a picture shrinks, the filter is widened by the
// scale.
enum class Interpolation { nearest, box, bilinear, hamming, bicubic, lanczos };

// By timm's name: "bilinear", "bicubic", … Error lists the names if there is none such.
Interpolation interpolation_named(const std::string& name);

// A rectangle of pixels inside a picture.
struct Region {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// The picture at width × height, pixel for pixel Pillow's Image.resize((width, height), interpolation): a horizontal
// and then a vertical pass of 8-bit fixed-point sums (libImaging/Resample.c), a pass that changes nothing left out.
// Error if a size is not positive.
io::Image resize(const io::Image& image, std::int64_t width, std::int64_t height, Interpolation interpolation);
// The same of a part of the picture, as image.crop(region).resize(…): pixels outside the region do not take part.
io::Image resize(const io::Image& image, const Region& region, std::int64_t width, std::int64_t height,
                 Interpolation interpolation);
// Only the part `window` of the picture at width × height, as resize(…).crop(window): what lies outside costs nothing.
io::Image resize_window(const io::Image& image, std::int64_t width, std::int64_t height, const Region& window,
                        Interpolation interpolation);

}  // namespace vitrail::data
