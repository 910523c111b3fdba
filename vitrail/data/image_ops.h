/// \file
/// Operations on whole images with Pillow's pixels: its ImageOps, filters and affine transforms, as automatic
/// augmentation uses them. All of them change the image in place.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

using Color = std::array<std::uint8_t, 3>;  ///< red, green, blue

/// Pillow's ImageOps.autocontrast: stretches each channel linearly to 0 … 255.
void auto_contrast(io::Image& image);
/// Pillow's ImageOps.equalize: maps each channel by its own cumulative histogram.
void equalize(io::Image& image);
/// Pillow's ImageOps.invert: replaces each sample by 255 minus it.
void invert(io::Image& image);
/// Pillow's ImageOps.posterize: keeps the `bits` highest bits of each sample, 0 … 8. 0 gives black, as in Pillow before
/// it refused 0.
void posterize(io::Image& image, int bits);
/// Pillow's ImageOps.solarize: inverts the samples that are at least `threshold`.
void solarize(io::Image& image, int threshold);
/// AutoAugment's SolarizeAdd: adds `add` to the samples below 128; the results are clipped to 0 … 255.
void solarize_add(io::Image& image, int add);
/// Pillow's ImageEnhance.Sharpness: blends from the smoothed image (factor 0) over the image itself (1) to a sharper
/// one (above 1).
void adjust_sharpness(io::Image& image, double factor);
/// Pillow's ImageFilter.GaussianBlur: three box blurs in each direction approximate a Gaussian with a standard
/// deviation of `radius` pixels (Gwosdek et al. 2011, "Theoretical foundations of Gaussian convolution by extended box
/// filtering"). Throws Error unless 0 <= radius <= 10000.
void gaussian_blur(io::Image& image, double radius);

/// Pillow's `Image.transform(size, AFFINE, matrix, resample, fillcolor)`: with `matrix` = {a, b, c, d, e, f} and
/// positions measured to the centres of pixels, the pixel at (x, y) becomes what lies at
///
/// ```text
/// (a x + b y + c, d x + e y + f),
/// ```
///
/// or `fill` where that is outside. Throws Error unless the interpolation is nearest, bilinear or bicubic.
void transform_affine(io::Image& image, const std::array<double, 6>& matrix, Interpolation interpolation, Color fill);
/// Pillow's `Image.rotate(degrees, resample, fillcolor)`: rotates counter-clockwise around the centre, keeping the
/// size.
void rotate(io::Image& image, double degrees, Interpolation interpolation, Color fill);

}  // namespace vitrail::data
