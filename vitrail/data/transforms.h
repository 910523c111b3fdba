// From a decoded picture to a model's input: timm's evaluation and training transforms.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/mix.h"
#include "vitrail/data/picture_config.h"
#include "vitrail/data/resize.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

// What happens to training pictures, by timm's flags and with its defaults.
struct AugmentOptions {
  bool no_aug = false;                  // --no-aug: only squashed to size, with the model's interpolation
  std::string train_crop_mode = "rrc";  // --train-crop-mode: rrc random resized crop, rkrc / rkrr random resize keeping
                                        // the ratio with a centre / random crop; src: DeiT-III's simple random crop;
                                        // pad: padded random crop (ours)
  std::pair<double, double> scale = {0, 0};  // --scale: area range; {0, 0}: timm's default of the crop mode
  std::pair<double, double> ratio = {0, 0};  // --ratio: aspect range; likewise
  std::int64_t crop_padding = 4;  // for pad and src: pixels added on each side before cropping, black or mirrored
  double hflip = 0.5;             // --hflip
  double vflip = 0;               // --vflip
  std::string aa;                 // --aa: a policy of auto_augment.h, instead of the colour jitter
  std::vector<double> color_jitter = {0.4};    // --color-jitter: one for all but hue, or three, or four with hue
  double color_jitter_prob = 1;                // --color-jitter-prob
  double grayscale_prob = 0;                   // --grayscale-prob
  std::string train_interpolation = "random";  // --train-interpolation: random draws bilinear or bicubic
  double reprob = 0;                           // --reprob: of random erasing
  std::string remode = "pixel";                // --remode: const, rand, pixel
  std::int64_t recount = 1;                    // --recount: erased boxes at most
};

// Turns pictures into normalized tensors. A value: cheap to copy, safe to call from several threads. What it does to a
// picture depends on (seed, epoch, index) alone.
class Transform {
 public:
  Transform();  // eval_transform({})

  // [C, H, W] f32.
  Tensor operator()(const io::Image& image, std::uint64_t seed = 0, std::int64_t epoch = 0,
                    std::int64_t index = 0) const;
  // The same into C · H · W floats of the caller's; without random erasing if `erase` is false.
  void apply(const io::Image& image, std::uint64_t seed, std::int64_t epoch, std::int64_t index, float* out,
             bool erase = true) const;
  // The 8-bit picture just before normalization, for showing people what the model sees.
  io::Image picture(const io::Image& image, std::uint64_t seed = 0, std::int64_t epoch = 0,
                    std::int64_t index = 0) const;

  const PictureConfig& config() const;
  Shape shape() const;  // [C, H, W]

 private:
  friend Transform eval_transform(const PictureConfig& config);
  friend Transform train_transform(const PictureConfig& config, const AugmentOptions& options);
  struct Plan;
  explicit Transform(std::shared_ptr<const Plan> plan);
  std::shared_ptr<const Plan> plan_;
};

// timm's transforms_imagenet_eval: the picture resized so that the target is crop_pct of it, the centre taken.
//   center: the shorter side resized, the ratio kept; squash: both sides; border: the longer side, borders in the
//   mean's colour.
// Error names a field that makes no sense.
Transform eval_transform(const PictureConfig& config);
// timm's transforms_imagenet_train: crop, flips, automatic augmentation or colour jitter, normalization, random
// erasing.
Transform train_transform(const PictureConfig& config, const AugmentOptions& options);

}  // namespace vitrail::data
