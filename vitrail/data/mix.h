/// \file
/// MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019): the images and labels of a batch are blended with those of
/// the same batch in reverse order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// Which images share a mixture: the whole batch (batch), an image and its partner (pair), or none (elem). The mode
/// half is like elem, but keeps only the first half of the batch, mixed with the second.
enum class MixMode { batch, pair, elem, half };
MixMode mix_mode_named(std::string_view name);  ///< "batch", "pair", "elem", "half"; Error otherwise

/// The options of MixUp and CutMix, by timm's flags of the same names. Nothing is mixed while the first three are
/// unset.
struct MixOptions {
  double mixup = 0;   ///< `--mixup`: alpha of MixUp's Beta(alpha, alpha); 0 = no MixUp
  double cutmix = 0;  ///< `--cutmix`: alpha of CutMix's Beta(alpha, alpha); 0 = no CutMix
  std::optional<std::pair<double, double>> cutmix_minmax;  ///< `--cutmix-minmax`: CutMix by box size instead of alpha
  double mixup_prob = 1;                                   ///< `--mixup-prob`: probability of mixing at all
  double mixup_switch_prob = 0.5;    ///< `--mixup-switch-prob`: probability of CutMix if both are on
  MixMode mode = MixMode::batch;     ///< `--mixup-mode`
  std::int64_t mixup_off_epoch = 0;  ///< `--mixup-off-epoch`: no mixing from this epoch on; 0 = never

  bool enabled() const { return mixup > 0 || cutmix > 0 || cutmix_minmax.has_value(); }
};

/// How an image x is mixed with its partner, the image at the same distance from the other end of the batch: x ← lambda
/// · x + (1 - lambda) · partner, or, for CutMix, the box [top, bottom) × [left, right) of x ← that of the partner.
struct Mixture {
  double lambda = 1;  ///< the share of the image's own label; 1 = not mixed
  bool cutmix = false;
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
};

/// Draws a mixture for images of height × width pixels (timm's `Mixup._params_per_batch` and cutmix_bbox_and_lam):
/// lambda from Beta(alpha, alpha); for CutMix a box of area 1 - lambda around a uniformly drawn centre, after which
/// lambda is corrected to the area inside the image.
Mixture draw_mixture(const MixOptions& options, std::int64_t height, std::int64_t width, Draws& draws);

/// Draws the mixtures of all images of a batch, shared as options.mode says (timm's `_params_per_elem`). With
/// MixMode::half, the second half of the batch is not mixed.
std::vector<Mixture> draw_mixtures(const MixOptions& options, std::int64_t batch, std::int64_t height,
                                   std::int64_t width, Draws& draws);

/// CutMix's box for `lambda` around (center_y, center_x), clipped to the image, with lambda corrected.
Mixture cutmix_box(double lambda, std::int64_t center_y, std::int64_t center_x, std::int64_t height,
                   std::int64_t width);

/// Mixes x [B, C, H, W] f32, which must be contiguous, in place by B mixtures.
void mix_images(const Tensor& x, std::span<const Mixture> mixtures);
/// The labels as smoothed one-hot rows, each blended with its partner's by its mixture: [B, num_classes] f32. Throws
/// Error for a label that is not below num_classes.
Tensor mix_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, std::span<const Mixture> mixtures,
                  double smoothing);
/// The labels as smoothed one-hot rows, [B, num_classes] f32: 1 - smoothing + smoothing / num_classes for the label,
/// smoothing / num_classes for the other classes.
Tensor smooth_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, double smoothing);

}  // namespace vitrail::data
