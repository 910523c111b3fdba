// Operations on whole pictures with Pillow's pixels: its ImageOps, filters and affine transforms, as automatic
// augmentation uses them. All work in place.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

using Color = std::array<std::uint8_t, 3>;

// ImageOps.autocontrast: each channel stretched linearly to 0 … 255.
void auto_contrast(io::Image& image);
// ImageOps.equalize: each channel by its own cumulative histogram.
void equalize(io::Image& image);
// ImageOps.invert.
void invert(io::Image& image);
// ImageOps.posterize: keeps the `bits` highest bits of each sample, 0 … 8. (0 is black, as it was before Pillow refused
// it.)
void posterize(io::Image& image, int bits);
// ImageOps.solarize: samples from `threshold` on are inverted.
void solarize(io::Image& image, int threshold);
// Adds `add` to samples below 128, at most to 255 (AutoAugment's SolarizeAdd).
void solarize_add(io::Image& image, int add);
// ImageEnhance.Sharpness: from the smoothed picture (factor 0) over itself (1) to a sharper one (above 1).
void adjust_sharpness(io::Image& image, double factor);
// ImageFilter.GaussianBlur: three box blurs each way for a Gaussian of standard deviation `radius` pixels (Gwosdek et
// al. 2011, "Theoretical foundations of Gaussian convolution by extended box filtering"). Error unless 0 <= radius <=
// 10000.
void gaussian_blur(io::Image& image, double radius);

// Image.transform(size, AFFINE, matrix, resample, fillcolor): the pixel at (x, y) becomes what lies at (a x + b y + c,
// d x + e y + f), positions measured to the middles of pixels; `fill` where that is outside. Error unless the
// interpolation is nearest, bilinear or bicubic.
void transform_affine(io::Image& image, const std::array<double, 6>& matrix, Interpolation interpolation, Color fill);
// Image.rotate(degrees, resample, fillcolor): counter-clockwise around the centre, in the same size.
void rotate(io::Image& image, double degrees, Interpolation interpolation, Color fill);

}  // namespace vitrail::data
