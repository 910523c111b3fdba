/// \file
/// From a decoded image to a model's input: timm's transforms for evaluation and training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/image_config.h"
#include "vitrail/data/mix.h"
#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// What happens to training images, by timm's flags and with timm's defaults.
struct AugmentOptions {
  bool no_aug = false;  ///< `--no-aug`: images are only squashed to size, by the model's interpolation

  /// `--train-crop-mode`: rrc is a random resized crop; rkrc and rkrr are a random resize that keeps the ratio, with a
  /// centre or a random crop; src is DeiT III's simple random crop; pad is a crop of the padded image (vitrail's own).
  std::string train_crop_mode = "rrc";
  std::optional<std::pair<double, double>> scale;  ///< `--scale`: range of the area; unset: the crop mode's default
  std::optional<std::pair<double, double>> ratio;  ///< `--ratio`: of the aspect ratio; unset: the crop mode's default
  std::int64_t crop_padding = 4;  ///< pad and src: pixels added on each side before cropping, black or mirrored
  double hflip = 0.5;             ///< `--hflip`
  /// `--alternating-flip`: an image that is flipped in one epoch is not in the next (Jordan 2024, section 3.6); hflip
  /// is the share of those that are flipped in the first.
  bool alternating_flip = false;
  double vflip = 0;  ///< `--vflip`
  std::string aa;    ///< `--aa`: policy of auto_augment.h; all but three-augment replace the colour jitter
  std::vector<double> color_jitter = {0.4};  ///< `--color-jitter`: one for all but hue, or three, or four with hue
  double color_jitter_prob = 1;              ///< `--color-jitter-prob`
  double grayscale_prob = 0;                 ///< `--grayscale-prob`
  double blur_prob = 0;                      ///< of Pillow's GaussianBlur, after the colours
  std::pair<double, double> blur_radius = {0.1, 2};  ///< range of its radius in pixels
  double solarize_prob = 0;  ///< of inverting the samples that are at least `solarize_threshold`
  int solarize_threshold = 128;
  std::string train_interpolation = "random";  ///< `--train-interpolation`: random draws bilinear or bicubic
  double reprob = 0;                           ///< `--reprob`: probability of random erasing
  std::string remode = "pixel";                ///< `--remode`: const, rand, pixel
  std::int64_t recount = 1;                    ///< `--recount`: largest number of erased boxes

  bool jitters() const { return aa.empty() || aa.find("3a") != std::string::npos; }  ///< whether `aa` leaves the jitter
};

/// Turns images into normalized tensors. A Transform is a value: cheap to copy and safe to call from several threads.
/// What it does to an image depends on (seed, epoch, index) alone.
class Transform {
 public:
  Transform();  ///< eval_transform({})

  /// The normalized image [C, H, W] f32.
  Tensor operator()(const io::Image& image, std::uint64_t seed = 0, std::int64_t epoch = 0,
                    std::int64_t index = 0) const;
  /// Writes the normalized image to C · H · W floats at `out`; without random erasing if `erase` is false.
  void apply(const io::Image& image, std::uint64_t seed, std::int64_t epoch, std::int64_t index, float* out,
             bool erase = true) const;
  /// The 8-bit image just before normalization, which shows what the model sees.
  io::Image prepared(const io::Image& image, std::uint64_t seed = 0, std::int64_t epoch = 0,
                     std::int64_t index = 0) const;

  const ImageConfig& config() const;
  Shape shape() const;  ///< [C, H, W]

 private:
  friend Transform eval_transform(const ImageConfig& config);
  friend Transform train_transform(const ImageConfig& config, const AugmentOptions& options);
  struct Plan;
  explicit Transform(std::shared_ptr<const Plan> plan);
  std::shared_ptr<const Plan> plan_;
};

/// timm's transforms_imagenet_eval: the image is resized so that the target is crop_pct of it, and its centre is
/// taken.
/// ImageConfig::crop_mode says how it is resized:
/// - center: the shorter side to size, keeping the ratio,
/// - squash: both sides to size,
/// - border: the longer side to size, with borders in the colour of the mean.
///
/// With an ImageConfig::processor, it does what that says instead: the pixels of transformers' image processors. Throws
/// Error naming a field that is out of range.
Transform eval_transform(const ImageConfig& config);
/// Whether it shows the whole of an image of width × height pixels, and nothing around it, so that a place in the one
/// is the same share of the other.
bool shows_whole(const ImageConfig& config, std::int64_t width, std::int64_t height);
/// timm's transforms_imagenet_train: crop, flips, automatic augmentation or colour jitter, normalization, random
/// erasing. Between grayscale and normalization an image may be blurred and then solarized, as the views of DINO are.
/// Throws Error naming a field or an option that is out of range.
Transform train_transform(const ImageConfig& config, const AugmentOptions& options);

}  // namespace vitrail::data
