// MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019): batches whose pictures and labels are blended with those of
// the same batch in reverse order.
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

// What shares its mixture: the whole batch; each picture and its partner; no two. `half`: no two, and of the batch only
// the first half is kept, mixed with the second.
enum class MixMode { batch, pair, elem, half };
MixMode mix_mode_named(std::string_view name);  // "batch", "pair", "elem", "half"; Error otherwise

// timm's flags of the same names. Nothing is mixed while all of the first three are unset.
struct MixOptions {
  double mixup = 0;                                        // --mixup: alpha of MixUp's Beta(alpha, alpha); 0 = no MixUp
  double cutmix = 0;                                       // --cutmix: alpha of CutMix's; 0 = no CutMix
  std::optional<std::pair<double, double>> cutmix_minmax;  // --cutmix-minmax: CutMix by box size instead of alpha
  double mixup_prob = 1;                                   // --mixup-prob: of mixing a batch at all
  double mixup_switch_prob = 0.5;                          // --mixup-switch-prob: of CutMix when both are on
  MixMode mode = MixMode::batch;                           // --mixup-mode
  std::int64_t mixup_off_epoch = 0;                        // --mixup-off-epoch: no mixing from this epoch on; 0 = never

  bool enabled() const { return mixup > 0 || cutmix > 0 || cutmix_minmax.has_value(); }
};

// What is done to one picture: x ← lambda · x + (1 - lambda) · partner, or the box [top, bottom) × [left, right) of x ←
// that of the partner, which is the picture as far from the batch's other end.
struct Mixture {
  double lambda = 1;  // the share of a picture's own label; 1 = not mixed
  bool cutmix = false;
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
};

// Draws what to do to height × width pictures (timm's Mixup._params_per_batch and cutmix_bbox_and_lam): lambda from
// Beta, a box of area 1 - lambda around a uniform centre, lambda corrected to the area inside the picture.
Mixture draw_mixture(const MixOptions& options, std::int64_t height, std::int64_t width, Draws& draws);

// The same for each picture of a batch, as `mode` shares them (timm's _params_per_elem). Of `half`, the second half is
// left as it is.
std::vector<Mixture> draw_mixtures(const MixOptions& options, std::int64_t batch, std::int64_t height,
                                   std::int64_t width, Draws& draws);

// CutMix's box around (center_y, center_x) for `lambda`, clipped to the picture, with lambda corrected.
Mixture cutmix_box(double lambda, std::int64_t center_y, std::int64_t center_x, std::int64_t height,
                   std::int64_t width);

// Mixes x [B, C, H, W] f32 in place by B mixtures.
void mix_pictures(const Tensor& x, std::span<const Mixture> mixtures);
// [B, C] f32: the labels as smoothed one-hot rows, each blended with its partner's by its mixture.
Tensor mix_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, std::span<const Mixture> mixtures,
                  double smoothing);
// The labels as smoothed one-hot rows.
Tensor smooth_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, double smoothing);

}  // namespace vitrail::data
