// Automatic augmentation by timm's policy strings (--aa): RandAugment (Cubuk et al. 2019), AutoAugment (Cubuk et al.
// 2018), three-augment (Touvron et al. 2022, "DeiT III") and AugMix (Hendrycks et al. 2019). What is done to a picture
// is drawn first, by timm's distributions, and then carried out, with timm's pixels.
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

// timm's operations by its names: "AutoContrast", "Rotate", "PosterizeIncreasing" … They take a level from 0 to 10 (or
// more), which each turns into its own argument. The "…Increasing" ones change more at higher levels, where the plain
// ones go from one extreme through no change to the other.
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
Operation operation_named(std::string_view name);  // Error if timm has none of that name
std::string_view name_of(Operation operation);

// An operation of a policy: done with this probability, at about this level.
struct PolicyStep {
  Operation operation = Operation::invert;
  double probability = 1;
  double magnitude = 10;
};

struct AutoAugment {
  enum class Kind { auto_augment, rand_augment, augmix };
  Kind kind = Kind::auto_augment;
  // AutoAugment: sub-policies, of which one is chosen and its steps done in order. The others: operations to choose
  // from, one each.
  std::vector<std::vector<PolicyStep>> choices;
  std::vector<double> weights;  // RandAugment with weights: probabilities of the choices; none is chosen twice then
  std::int64_t num_layers = 1;  // RandAugment's n: operations a picture
  double magnitude_std = 0;     // levels vary normally by this; infinite: they are uniform from 0 to the magnitude
  double magnitude_max = 10;    // levels are cut off here (and at 0)
  double translate_pct = 0.45;  // of the side: how far level 10 shifts
  std::int64_t mix_width = 3;   // AugMix: chains that are mixed
  std::int64_t mix_depth = -1;  // AugMix: operations a chain; -1: 1, 2 or 3
  double mix_alpha = 1;         // AugMix: of the Dirichlet and Beta distributions
  bool mix_blended = false;     // AugMix: each chain blended in turn instead of their sum
  std::optional<Interpolation> interpolation;  // of rotating, shearing and shifting; none: bilinear or bicubic is drawn
};

// What timm makes of a policy string: "rand-m9-mstd0.5-inc1" (parts m, n, p, mstd, mmax, inc, t), "original",
// "originalr", "v0", "v0r", "3a" (part mstd), "augmix-m5-w4-d2" (parts m, w, d, a, b, mstd). Error names an unknown
// policy or part with the near ones, and a number that makes no sense.
AutoAugment auto_augment_named(const std::string& policy);

// An operation with all that chance decides.
struct DrawnOperation {
  Operation operation = Operation::invert;
  double level = 0;
  bool negative = false;  // to the other side: counter-clockwise or clockwise, less colour or more …
  Interpolation interpolation = Interpolation::bicubic;
  double unit = 0;  // [0, 1): where between its bounds the radius of gaussian_blur_rand lies
};

// What is done to one picture.
struct DrawnAugmentation {
  std::vector<std::vector<DrawnOperation>> chains;  // one; of AugMix several, each from the original
  std::vector<float> weights;                       // AugMix: of the chains, their sum is 1
  float blend = 1;                                  // AugMix: share of the mixture, the rest is the original
};
DrawnAugmentation draw_augmentation(const AutoAugment& policy, Draws& draws);

// Carries it out. `fill` is for pixels from outside the picture: timm's is the mean colour.
void augment(io::Image& image, const DrawnOperation& operation, double translate_pct, Color fill);
void augment(io::Image& image, const DrawnAugmentation& drawn, const AutoAugment& policy, Color fill);

}  // namespace vitrail::data
