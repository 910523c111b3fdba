#include "vitrail/data/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "vitrail/data/augment.h"
#include "vitrail/data/auto_augment.h"
#include "vitrail/data/image_ops.h"
#include "vitrail/data/image_window.h"
#include "vitrail/data/rounding.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

// Intermediate images that views point to.
struct Scratch {
  io::Image gray;
  io::Image resized;
};

// The size to which timm's ResizeKeepRatio resizes an image: `longest` 0 brings the side that is shorter, relative to
// the target, to the target's length, 1 the longer one.
std::pair<std::int64_t, std::int64_t> keep_ratio_size(const io::Image& image, std::int64_t width, std::int64_t height,
                                                      double longest, double scale_x, double scale_y) {
  const double ratio_h = static_cast<double>(image.height) / static_cast<double>(height);
  const double ratio_w = static_cast<double>(image.width) / static_cast<double>(width);
  const double ratio = std::max(ratio_h, ratio_w) * longest + std::min(ratio_h, ratio_w) * (1.0 - longest);
  return {std::max(round_half_even(static_cast<double>(image.width) * scale_x / ratio), std::int64_t{1}),
          std::max(round_half_even(static_cast<double>(image.height) * scale_y / ratio), std::int64_t{1})};
}

// One number per channel: `values` as they are, a single one repeated, or their mean for a grayscale model.
std::vector<double> per_channel(const std::vector<double>& values, std::int64_t channels, const char* name) {
  if (values.size() == static_cast<std::size_t>(channels)) {
    return values;
  }
  if (values.size() == 1) {
    return std::vector<double>(static_cast<std::size_t>(channels), values[0]);
  }
  check(channels == 1 && !values.empty(), "the images' {} has {} numbers for {} channels", name, values.size(),
        channels);
  return {std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())};
}

void check_probability(double value, const char* name) {
  check(value >= 0 && value <= 1, "{} must be a probability, 0 … 1, not {}", name, value);
}

ColorJitter jitter_of(const std::vector<double>& strengths) {
  ColorJitter jitter;
  if (strengths.empty()) {
    return jitter;
  }
  check(strengths.size() == 1 || strengths.size() == 3 || strengths.size() == 4,
        "color_jitter takes one number, three (brightness, contrast, saturation) or four (and hue), not {}",
        strengths.size());
  const auto range = [&](std::size_t i) {
    const double strength = strengths[strengths.size() == 1 ? 0 : i];
    check(strength >= 0, "color_jitter must not be negative, but is {}", strength);
    return std::pair(std::max(1.0 - strength, 0.0), 1.0 + strength);
  };
  jitter.brightness = range(0);
  jitter.contrast = range(1);
  jitter.saturation = range(2);
  if (strengths.size() == 4) {
    check(strengths[3] >= 0 && strengths[3] <= 0.5, "color_jitter's hue must be 0 … 0.5, not {}", strengths[3]);
    jitter.hue = {-strengths[3], strengths[3]};
  }
  return jitter;
}

EraseMode erase_mode(const std::string& name) {
  if (name == "const") {
    return EraseMode::constant;
  }
  if (name == "rand") {
    return EraseMode::color;
  }
  check(name == "pixel", "remode must be const, rand or pixel, not '{}'", name);
  return EraseMode::pixel;
}

// What the random numbers of one use of an image depend on.
struct Occasion {
  std::uint64_t seed;
  std::int64_t epoch;
  std::int64_t index;
};

Draws draws_of(const Occasion& occasion) {
  return Draws(Philox(mix(occasion.seed, static_cast<std::uint64_t>(occasion.epoch)),
                      static_cast<std::uint64_t>(occasion.index)));
}

// Whether an image is flipped that is flipped in every other epoch, by a draw for the first one.
bool alternately_flipped(const Occasion& occasion, double share) {
  Draws first = draws_of({mix(occasion.seed, hash("alternating flip")), 0, occasion.index});
  return (first.uniform() < share) != (occasion.epoch % 2 == 1);
}

}  // namespace

// The options of a Transform after names were looked up, defaults filled in and everything checked, once.
struct Transform::Plan {
  enum class Crop {
    center,
    squash,
    border,
    processor,
    random_resized,
    ratio_center,
    ratio_random,
    simple_random,
    padded
  };

  explicit Plan(const ImageConfig& image);
  Plan(const ImageConfig& image, const AugmentOptions& options);

  ImageWindow geometry(const io::Image& image, Scratch& scratch, Draws& draws) const;
  ImageWindow evaluation(const io::Image& image, Scratch& scratch) const;
  ImageWindow processed(const io::Image& image, Scratch& scratch) const;
  ImageWindow keep_ratio(const io::Image& image, Scratch& scratch, Draws& draws) const;
  void resize_to(const io::Image& image, std::int64_t w, std::int64_t h, Interpolation filter, ImageWindow& view,
                 Scratch& scratch) const;
  Interpolation draw_filter(Draws& draws) const;
  // Does everything up to normalization. Returns a view of `image` or of `scratch`.
  ImageWindow prepare(const io::Image& image, Scratch& scratch, const Occasion& occasion, Draws& draws) const;

  ImageConfig config;
  Crop crop = Crop::center;
  Interpolation interpolation = Interpolation::bicubic;
  bool random_interpolation = false;
  Color mean_color = {0, 0, 0};  // of pixels that must be filled in
  std::pair<double, double> scale = {1, 1};
  std::pair<double, double> ratio = {1, 1};
  std::int64_t padding = 0;
  double hflip = 0;
  bool alternating_flip = false;
  double vflip = 0;
  std::optional<AutoAugment> policy;
  ColorJitter jitter;
  double jitter_probability = 0;
  double grayscale_probability = 0;
  double blur_probability = 0;
  std::pair<double, double> blur_radius = {0, 0};
  double solarize_probability = 0;
  int solarize_threshold = 0;
  RandomErasing erasing;
  std::vector<std::array<float, 256>> normalized;  // [channels]: the normalized value of each 8-bit sample
};

Transform::Plan::Plan(const ImageConfig& image) : config(image) {
  check(config.channels == 3 || config.channels == 1, "images have 3 channels or 1, not {}", config.channels);
  check(config.height > 0 && config.width > 0, "images of {} x {} pixels have nothing in them", config.width,
        config.height);
  check(config.processor || (config.crop_pct > 0 && config.crop_pct <= 8),
        "crop_pct must be positive (usually 0.8 … 1), not {}", config.crop_pct);
  interpolation = interpolation_named(config.interpolation);
  if (config.crop_mode == "squash") {
    crop = Crop::squash;
  } else if (config.crop_mode == "border") {
    crop = Crop::border;
  } else {
    check(config.crop_mode == "center", "crop_mode must be center, squash or border, not '{}'", config.crop_mode);
  }
  if (config.processor) {
    config.processor = config.processor->scaled_to(config.height, config.width);
    crop = Crop::processor;
  }
  const std::vector<double> mean = per_channel(config.mean, config.channels, "mean");
  const std::vector<double> std = per_channel(config.std, config.channels, "std");
  for (std::size_t c = 0; c < mean.size(); ++c) {
    check(std[c] > 0, "the images' std must be positive, but is {}", std[c]);
    std::array<float, 256>& table = normalized.emplace_back();
    for (int v = 0; v < 256; ++v) {  // in torch's order of operations in float
      const float value = static_cast<float>(v) / 255.0F - static_cast<float>(mean[c]);
      table[static_cast<std::size_t>(v)] = value / static_cast<float>(std[c]);
    }
  }
  for (std::size_t c = 0; c < mean_color.size(); ++c) {
    mean_color[c] = static_cast<std::uint8_t>(
        std::clamp(round_half_even(255 * mean[std::min(c, mean.size() - 1)]), std::int64_t{0}, std::int64_t{255}));
  }
}

Transform::Plan::Plan(const ImageConfig& image, const AugmentOptions& options) : Plan(image) {
  if (options.no_aug) {
    crop = Crop::squash;
    config.crop_pct = 1;
    return;
  }
  std::pair<double, double> default_scale = {0.08, 1.0};
  std::pair<double, double> default_ratio = {3.0 / 4.0, 4.0 / 3.0};
  if (options.train_crop_mode == "rrc") {
    crop = Crop::random_resized;
  } else if (options.train_crop_mode == "pad") {
    crop = Crop::padded;
  } else if (options.train_crop_mode == "src") {
    crop = Crop::simple_random;
  } else {
    check(options.train_crop_mode == "rkrc" || options.train_crop_mode == "rkrr",
          "train_crop_mode must be rrc, rkrc, rkrr, src or pad, not '{}'", options.train_crop_mode);
    crop = options.train_crop_mode == "rkrc" ? Crop::ratio_center : Crop::ratio_random;
    default_scale = {0.8, 1.0};
    default_ratio = {0.9, 1 / 0.9};
  }
  scale = options.scale.value_or(default_scale);
  ratio = options.ratio.value_or(default_ratio);
  check(scale.first > 0 && scale.first <= scale.second, "scale must be two positive numbers in order, not {} {}",
        scale.first, scale.second);
  check(ratio.first > 0 && ratio.first <= ratio.second, "ratio must be two positive numbers in order, not {} {}",
        ratio.first, ratio.second);
  padding = options.crop_padding;
  check(padding >= 0, "crop_padding must not be negative, but is {}", padding);
  check(crop != Crop::simple_random || 2 * padding < std::min(config.width, config.height),
        "crop_padding must be less than half of the image's size to be mirrored, but is {} for {} x {} pixels", padding,
        config.width, config.height);
  random_interpolation = options.train_interpolation == "random";
  if (!random_interpolation) {
    interpolation = interpolation_named(options.train_interpolation);
  }
  hflip = options.hflip;
  alternating_flip = options.alternating_flip;
  vflip = options.vflip;
  if (!options.aa.empty()) {
    policy = auto_augment_named(options.aa);
    check(random_interpolation || interpolation == Interpolation::nearest || interpolation == Interpolation::bilinear ||
              interpolation == Interpolation::bicubic,
          "--train-interpolation {} cannot turn and shear images as --aa {} does: choose random, nearest, bilinear or "
          "bicubic",
          options.train_interpolation, options.aa);
    policy->interpolation = random_interpolation ? std::nullopt : std::optional(interpolation);
  }
  // A policy that changes colours replaces the jitter; only three-augment is meant to be used together with it.
  jitter = options.jitters() ? jitter_of(options.color_jitter) : ColorJitter();
  jitter_probability = jitter.changes_anything() ? options.color_jitter_prob : 0;
  grayscale_probability = options.grayscale_prob;
  blur_probability = options.blur_prob;
  blur_radius = options.blur_radius;
  check(blur_radius.first >= 0 && blur_radius.first <= blur_radius.second && blur_radius.second <= 1000,
        "blur_radius must be two numbers of pixels in order, up to 1000, not {} {}", blur_radius.first,
        blur_radius.second);
  solarize_probability = options.solarize_prob;
  solarize_threshold = options.solarize_threshold;
  erasing = {options.reprob, erase_mode(options.remode), options.recount};
  check(options.recount >= 1, "recount must be at least 1, not {}", options.recount);
  check_probability(hflip, "hflip");
  check_probability(vflip, "vflip");
  check_probability(options.color_jitter_prob, "color_jitter_prob");
  check_probability(grayscale_probability, "grayscale_prob");
  check_probability(blur_probability, "blur_prob");
  check_probability(solarize_probability, "solarize_prob");
  check_probability(erasing.probability, "reprob");
}

// timm's interpolation "random" draws bilinear or bicubic.
Interpolation Transform::Plan::draw_filter(Draws& draws) const {
  if (!random_interpolation) {
    return interpolation;
  }
  return draws.integer(0, 2) == 0 ? Interpolation::bilinear : Interpolation::bicubic;
}

// Points the view, whose x and y are set, at the image resized to w × h: at the image itself if it has that size, else
// at as much of the resized image as the target shows (all of it where the target is larger).
void Transform::Plan::resize_to(const io::Image& image, std::int64_t w, std::int64_t h, Interpolation filter,
                                ImageWindow& view, Scratch& scratch) const {
  view.image = &image;
  if (w != image.width || h != image.height) {
    Region window;
    window.x = std::max(view.x, std::int64_t{0});
    window.y = std::max(view.y, std::int64_t{0});
    window.width = std::min(view.x + config.width, w) - window.x;
    window.height = std::min(view.y + config.height, h) - window.y;
    scratch.resized = resize_window(image, w, h, window, filter);
    view.image = &scratch.resized;
    view.x -= window.x;
    view.y -= window.y;
  }
}

ImageWindow Transform::Plan::evaluation(const io::Image& image, Scratch& scratch) const {
  const auto scaled = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(side) / config.crop_pct));
  };
  std::int64_t w = scaled(config.width);
  std::int64_t h = scaled(config.height);
  if (crop == Crop::center && w == h) {
    std::tie(w, h) = shorter_side_size(image.width, image.height, w);
  } else if (crop != Crop::squash) {
    std::tie(w, h) = keep_ratio_size(image, w, h, crop == Crop::border ? 1.0 : 0.0, 1, 1);
  }
  ImageWindow view;
  view.x = center_offset(w, config.width);
  view.y = center_offset(h, config.height);
  resize_to(image, w, h, interpolation, view, scratch);
  if (crop == Crop::border) {
    view.fill = mean_color;
  }
  return view;
}

ImageWindow Transform::Plan::processed(const io::Image& image, Scratch& scratch) const {
  const auto [w, h] = config.processor->resized(image.width, image.height);
  ImageWindow view;
  view.x = ImageProcessor::center_offset(w, config.width);
  view.y = ImageProcessor::center_offset(h, config.height);
  resize_to(image, w, h, interpolation, view, scratch);
  return view;
}

// timm's ResizeKeepRatio with random scale and aspect ratio, then CenterCropOrPad or RandomCropOrPad.
ImageWindow Transform::Plan::keep_ratio(const io::Image& image, Scratch& scratch, Draws& draws) const {
  double scale_x = 1;
  double scale_y = 1;
  if (draws.uniform() < 0.5) {
    scale_x = scale_y = 1 / std::sqrt(draws.uniform(scale.first, scale.second));
  }
  if (draws.uniform() < 0.5) {
    const double aspect = std::sqrt(std::exp(draws.uniform(std::log(ratio.first), std::log(ratio.second))));
    scale_y /= aspect;
    scale_x *= aspect;
  }
  const auto [w, h] = keep_ratio_size(image, config.width, config.height, 0.0, scale_x, scale_y);
  ImageWindow view;
  view.reflect = true;
  if (crop == Crop::ratio_center) {
    view.x = center_offset(w, config.width);
    view.y = center_offset(h, config.height);
  } else {
    const auto offset = [&](std::int64_t spare) {
      const std::int64_t drawn = draws.integer(0, std::abs(spare) + 1);
      return spare < 0 ? -drawn : drawn;
    };
    view.y = offset(h - config.height);
    view.x = offset(w - config.width);
  }
  resize_to(image, w, h, draw_filter(draws), view, scratch);
  return view;
}

ImageWindow Transform::Plan::geometry(const io::Image& image, Scratch& scratch, Draws& draws) const {
  ImageWindow view;
  switch (crop) {
    case Crop::center:
    case Crop::squash:
    case Crop::border:
      return evaluation(image, scratch);
    case Crop::processor:
      return processed(image, scratch);
    case Crop::ratio_center:
    case Crop::ratio_random:
      return keep_ratio(image, scratch, draws);
    case Crop::random_resized: {
      const Region region = random_resized_crop(image.width, image.height, scale, ratio, draws);
      scratch.resized = resize(image, region, config.width, config.height, draw_filter(draws));
      view.image = &scratch.resized;
      return view;
    }
    case Crop::simple_random: {
      // DeiT III's `--src`: the shorter side to size, then a crop anywhere, also a little beyond the mirrored edges.
      const auto [w, h] = config.width == config.height
                              ? shorter_side_size(image.width, image.height, config.width)
                              : keep_ratio_size(image, config.width, config.height, 0.0, 1, 1);
      view.reflect = true;
      view.y = draws.integer(-padding, h - config.height + padding + 1);
      view.x = draws.integer(-padding, w - config.width + padding + 1);
      resize_to(image, w, h, draw_filter(draws), view, scratch);
      return view;
    }
    case Crop::padded:
      resize_to(image, config.width, config.height, draw_filter(draws), view, scratch);  // all of it: x and y are 0
      view.y = draws.integer(-padding, padding + 1);
      view.x = draws.integer(-padding, padding + 1);
      return view;
  }
  fail("no such crop");
}

ImageWindow Transform::Plan::prepare(const io::Image& image, Scratch& scratch, const Occasion& occasion,
                                     Draws& draws) const {
  const io::Image* source = &image;
  if (config.channels == 1) {
    scratch.gray = image;
    to_grayscale(scratch.gray);
    source = &scratch.gray;
  }
  ImageWindow view = geometry(*source, scratch, draws);
  view.hflip = alternating_flip ? alternately_flipped(occasion, hflip) : hflip > 0 && draws.uniform() < hflip;
  view.vflip = vflip > 0 && draws.uniform() < vflip;
  const bool jittered = jitter_probability > 0 && draws.uniform() < jitter_probability;
  const bool gray = grayscale_probability > 0 && draws.uniform() < grayscale_probability;
  const bool blurred = blur_probability > 0 && draws.uniform() < blur_probability;
  const double radius = blurred ? draws.uniform(blur_radius.first, blur_radius.second) : 0;
  const bool solarized = solarize_probability > 0 && draws.uniform() < solarize_probability;
  if (!policy && !jittered && !gray && !blurred && !solarized) {
    return view;
  }
  // The rest changes a copy, which is cropped first: contrast depends on the mean of what is left.
  io::Image copy = copy_of(view, config.width, config.height);
  if (policy) {
    augment(copy, draw_augmentation(*policy, draws), *policy, mean_color);
  }
  if (jittered) {
    jitter_color(copy, jitter, draws);
  }
  if (gray) {
    to_grayscale(copy);
  }
  if (blurred) {
    gaussian_blur(copy, radius);
  }
  if (solarized) {
    solarize(copy, solarize_threshold);
  }
  scratch.resized = std::move(copy);
  ImageWindow whole;
  whole.image = &scratch.resized;
  return whole;
}

Transform::Transform(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
Transform::Transform() : Transform(eval_transform({})) {}

const ImageConfig& Transform::config() const { return plan_->config; }
Shape Transform::shape() const { return {plan_->config.channels, plan_->config.height, plan_->config.width}; }

void Transform::apply(const io::Image& image, std::uint64_t seed, std::int64_t epoch, std::int64_t index, float* out,
                      bool erase) const {
  check(image.width > 0 && image.height > 0, "an image of {} x {} pixels cannot be prepared", image.width,
        image.height);
  const std::int64_t width = plan_->config.width;
  const std::int64_t height = plan_->config.height;
  const std::int64_t plane = width * height;
  const Occasion occasion{seed, epoch, index};
  Draws draws = draws_of(occasion);
  Scratch scratch;
  const ImageWindow view = plan_->prepare(image, scratch, occasion, draws);
  const auto& tables = plan_->normalized;
  if (tables.size() == 3) {
    for_each_pixel(view, width, height, [&](std::int64_t x, std::int64_t y, const std::uint8_t* rgb) {
      float* pixel = out + y * width + x;
      pixel[0] = tables[0][rgb[0]];
      pixel[plane] = tables[1][rgb[1]];
      pixel[2 * plane] = tables[2][rgb[2]];
    });
  } else {
    for_each_pixel(view, width, height, [&](std::int64_t x, std::int64_t y, const std::uint8_t* rgb) {
      out[y * width + x] = tables[0][rgb[0]];
    });
  }
  if (erase && plan_->erasing.probability > 0) {
    erase_randomly(out, plan_->config.channels, height, width, plan_->erasing, draws);
  }
}

Tensor Transform::operator()(const io::Image& image, std::uint64_t seed, std::int64_t epoch, std::int64_t index) const {
  Tensor result = Tensor::empty(shape());
  apply(image, seed, epoch, index, result.data<float>());
  return result;
}

io::Image Transform::prepared(const io::Image& image, std::uint64_t seed, std::int64_t epoch,
                              std::int64_t index) const {
  const Occasion occasion{seed, epoch, index};
  Draws draws = draws_of(occasion);
  Scratch scratch;
  const ImageWindow view = plan_->prepare(image, scratch, occasion, draws);
  return copy_of(view, plan_->config.width, plan_->config.height);
}

Transform eval_transform(const ImageConfig& config) {
  return Transform(std::make_shared<const Transform::Plan>(config));
}

bool shows_whole(const ImageConfig& config, std::int64_t width, std::int64_t height) {
  if (config.processor) {
    const ImageProcessor processor = config.processor->scaled_to(config.height, config.width);
    return processor.resized(width, height) == std::pair(processor.crop_width, processor.crop_height);
  }
  return config.crop_pct == 1 && (config.crop_mode == "squash" || width * config.height == height * config.width);
}

Transform train_transform(const ImageConfig& config, const AugmentOptions& options) {
  return Transform(std::make_shared<const Transform::Plan>(config, options));
}

}  // namespace vitrail::data
