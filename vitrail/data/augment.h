// What training does to pictures: crops, flips, colours, erasing. Operations equal Pillow's and torchvision's given the
// same factors; what is drawn follows timm's distributions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {

// Region of a random share of the picture's area (uniform in `scale`) and random aspect ratio (log-uniform in `ratio`),
// of ten attempts the first that fits, else the largest centre region of an allowed ratio (torchvision's and timm's
// RandomResizedCrop).
Region random_resized_crop(std::int64_t width, std::int64_t height, std::pair<double, double> scale,
                           std::pair<double, double> ratio, Draws& draws);

// In place, pixel for pixel torchvision's functions of these names on Pillow images. Factor 1 changes nothing, 0 is
// black, the mean gray, or gray pixels.
void adjust_brightness(io::Image& image, double factor);
void adjust_contrast(io::Image& image, double factor);
void adjust_saturation(io::Image& image, double factor);
// Turns the hue by `factor` of the whole circle, -0.5 … 0.5.
void adjust_hue(io::Image& image, double factor);
// Each pixel by its luma, as convert("L") (ITU-R 601-2).
void to_grayscale(io::Image& image);

// Ranges to draw factors from: {1, 1} ({0, 0} for the hue) leaves it as it is.
struct ColorJitter {
  std::pair<double, double> brightness = {1, 1};
  std::pair<double, double> contrast = {1, 1};
  std::pair<double, double> saturation = {1, 1};
  std::pair<double, double> hue = {0, 0};
  bool changes_anything() const;
};
// The four in random order with factors drawn from their ranges (torchvision's ColorJitter).
void jitter_color(io::Image& image, const ColorJitter& jitter, Draws& draws);

// What random erasing fills its boxes with, timm's --remode: zeros, one normal colour a box, normal noise.
enum class EraseMode { constant, color, pixel };
struct RandomErasing {
  double probability = 0;
  EraseMode mode = EraseMode::pixel;
  std::int64_t max_count = 1;  // boxes, 1 … max_count are drawn
};
// Erases boxes of 2 % to a third of the area (together) from a normalized picture [channels, height, width] (Zhong et
// al. 2017, "Random Erasing Data Augmentation"; timm's RandomErasing).
void erase_randomly(float* picture, std::int64_t channels, std::int64_t height, std::int64_t width,
                    const RandomErasing& options, Draws& draws);

}  // namespace vitrail::data
