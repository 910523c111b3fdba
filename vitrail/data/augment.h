/// \file
/// Image augmentation for training: random crops, colour changes, grayscale and random erasing. Given the same factors,
/// the operations give the pixels of Pillow and torchvision; what is drawn follows timm's distributions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {

/// Draws a region with a random share of the image's area (uniform in `scale`) and a random aspect ratio (log-uniform
/// in `ratio`): the first of ten attempts that fits into the image, otherwise the largest centred region of an allowed
/// ratio (RandomResizedCrop of torchvision and timm).
Region random_resized_crop(std::int64_t width, std::int64_t height, std::pair<double, double> scale,
                           std::pair<double, double> ratio, Draws& draws);

// These change an image in place and give, pixel for pixel, what torchvision's functions of these names give for Pillow
// images. A factor of 1 changes nothing; a factor of 0 gives black (brightness), the mean gray (contrast) or gray
// pixels (saturation).

void adjust_brightness(io::Image& image, double factor);
void adjust_contrast(io::Image& image, double factor);
void adjust_saturation(io::Image& image, double factor);
/// Rotates the hue in place by `factor` of the whole circle, -0.5 … 0.5, as torchvision's function of this name.
void adjust_hue(io::Image& image, double factor);
/// Replaces each pixel by its luma in place, as Pillow's `convert("L")` (ITU-R 601-2).
void to_grayscale(io::Image& image);

/// The ranges that the factors of jitter_color() are drawn from. {1, 1}, or {0, 0} for the hue, changes nothing.
struct ColorJitter {
  std::pair<double, double> brightness = {1, 1};
  std::pair<double, double> contrast = {1, 1};
  std::pair<double, double> saturation = {1, 1};
  std::pair<double, double> hue = {0, 0};
  bool changes_anything() const;
};
/// Changes brightness, contrast, saturation and hue in place, in random order and with factors drawn from their ranges
/// (torchvision's ColorJitter).
void jitter_color(io::Image& image, const ColorJitter& jitter, Draws& draws);

/// What random erasing fills its boxes with (timm's `--remode`): zeros, one normally distributed colour per box, or
/// normally distributed noise.
enum class EraseMode { constant, color, pixel };
struct RandomErasing {
  double probability = 0;
  EraseMode mode = EraseMode::pixel;
  std::int64_t max_count = 1;  ///< the number of boxes is drawn from 1 … max_count
};
/// Erases boxes from a normalized image `[channels, height, width]` in place. Together they cover 2 % to a third of its
/// area (Zhong et al. 2017, "Random Erasing Data Augmentation"; timm's RandomErasing).
void erase_randomly(float* image, std::int64_t channels, std::int64_t height, std::int64_t width,
                    const RandomErasing& options, Draws& draws);

}  // namespace vitrail::data
