/// \file
/// Automatic augmentation by timm's policy strings (`--aa`): RandAugment (Cubuk et al. 2019), AutoAugment (Cubuk et al.
/// 2018), three-augment (Touvron et al. 2022, "DeiT III") and AugMix (Hendrycks et al. 2019). What is done to an image
/// is first drawn from timm's distributions and then carried out with timm's pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/image_ops.h"
#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {

/// timm's operations. name_of() gives timm's names: "AutoContrast", "Rotate", "PosterizeIncreasing" … Each converts a
/// level from 0 to 10 (or more) into its own argument. The variants "…Increasing" change an image more at higher
/// levels; the plain ones go from one extreme through no change to the other.
enum class Operation {
  auto_contrast,
  equalize,
  invert,
  rotate,
  posterize,
  posterize_increasing,
  posterize_original,
  solarize,
  solarize_increasing,
  solarize_add,
  color,
  color_increasing,
  contrast,
  contrast_increasing,
  brightness,
  brightness_increasing,
  sharpness,
  sharpness_increasing,
  shear_x,
  shear_y,
  translate_x_rel,
  translate_y_rel,
  desaturate,
  gaussian_blur,
  gaussian_blur_rand,
};
Operation operation_named(std::string_view name);  ///< Error if timm has no operation of that name
std::string_view name_of(Operation operation);

/// One operation of a policy: it is done with a probability, at a level around the magnitude.
struct PolicyStep {
  Operation operation = Operation::invert;
  double probability = 1;
  double magnitude = 10;
};

/// An augmentation policy; auto_augment_named() makes one from timm's string.
struct AutoAugment {
  enum class Kind { auto_augment, rand_augment, augmix };
  Kind kind = Kind::auto_augment;
  /// AutoAugment: sub-policies, one of which is chosen for an image and its steps done in order. RandAugment and
  /// AugMix: the operations to choose from, one per entry.
  std::vector<std::vector<PolicyStep>> choices;
  std::vector<double> weights;  ///< RandAugment with weights: probabilities of the choices; none is then drawn twice
  std::int64_t num_layers = 1;  ///< RandAugment's n: operations per image
  double magnitude_std = 0;     ///< standard deviation of the levels; infinite: uniform from 0 to the magnitude
  double magnitude_max = 10;    ///< levels are clipped to 0 … magnitude_max
  double translate_pct = 0.45;  ///< how far level 10 shifts, as a share of the side
  std::int64_t mix_width = 3;   ///< AugMix: number of chains that are mixed
  std::int64_t mix_depth = -1;  ///< AugMix: operations per chain; -1: 1, 2 or 3
  double mix_alpha = 1;         ///< AugMix: parameter of the Dirichlet and Beta distributions
  bool mix_blended = false;     ///< AugMix: each chain is blended in turn, instead of their sum
  std::optional<Interpolation> interpolation;  ///< for rotating, shearing, shifting; none: bilinear or bicubic is drawn
};

/// Parses timm's policy strings: "rand-m9-mstd0.5-inc1" (parts m, n, p, mstd, mmax, inc, t), "original", "originalr",
/// "v0", "v0r", "3a" (part mstd), "augmix-m5-w4-d2" (parts m, w, d, a, b, mstd). Throws Error for an unknown policy or
/// part, which suggests similar ones, and for a number that is out of range.
AutoAugment auto_augment_named(const std::string& policy);

/// An operation of which everything that is random has been drawn.
struct DrawnOperation {
  Operation operation = Operation::invert;
  double level = 0;
  bool negative = false;  ///< in the other direction: counter-clockwise or clockwise, less colour or more …
  Interpolation interpolation = Interpolation::bicubic;
  double unit = 0;  ///< [0, 1): where between its bounds the radius of gaussian_blur_rand lies
};

/// Everything that is done to one image.
struct DrawnAugmentation {
  std::vector<std::vector<DrawnOperation>> chains;  ///< one; for AugMix several, each of which starts from the original
  std::vector<float> weights;                       ///< AugMix: one per chain; their sum is 1
  float blend = 1;                                  ///< AugMix: share of the mixture; the rest is the original
};
/// Draws what `policy` does to one image.
DrawnAugmentation draw_augmentation(const AutoAugment& policy, Draws& draws);

/// Carries out one operation in place. `translate_pct` is the policy's; pixels from outside of the image become `fill`.
void augment(io::Image& image, const DrawnOperation& operation, double translate_pct, Color fill);
/// Carries out in place what was drawn from `policy`. Pixels from outside of the image become `fill`, in timm the mean
/// colour.
void augment(io::Image& image, const DrawnAugmentation& drawn, const AutoAugment& policy, Color fill);

}  // namespace vitrail::data
