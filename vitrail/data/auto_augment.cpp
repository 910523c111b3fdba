#include "vitrail/data/auto_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "vitrail/data/augment.h"
#include "vitrail/data/pixels.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

// timm's names, in the order of the enumeration.
constexpr std::array<std::string_view, 25> operation_names = {"AutoContrast",
                                                              "Equalize",
                                                              "Invert",
                                                              "Rotate",
                                                              "Posterize",
                                                              "PosterizeIncreasing",
                                                              "PosterizeOriginal",
                                                              "Solarize",
                                                              "SolarizeIncreasing",
                                                              "SolarizeAdd",
                                                              "Color",
                                                              "ColorIncreasing",
                                                              "Contrast",
                                                              "ContrastIncreasing",
                                                              "Brightness",
                                                              "BrightnessIncreasing",
                                                              "Sharpness",
                                                              "SharpnessIncreasing",
                                                              "ShearX",
                                                              "ShearY",
                                                              "TranslateXRel",
                                                              "TranslateYRel",
                                                              "Desaturate",
                                                              "GaussianBlur",
                                                              "GaussianBlurRand"};

DrawnOperation draw_operation(const PolicyStep& step, const AutoAugment& policy, Draws& draws) {
  DrawnOperation drawn;
  drawn.operation = step.operation;
  drawn.level = step.magnitude;
  if (std::isinf(policy.magnitude_std)) {
    drawn.level = draws.uniform(0, step.magnitude);
  } else if (policy.magnitude_std > 0) {
    drawn.level += policy.magnitude_std * draws.normal();
  }
  drawn.level = std::clamp(drawn.level, 0.0, policy.magnitude_max);
  drawn.negative = draws.uniform() > 0.5;
  drawn.interpolation =
      policy.interpolation.value_or(draws.integer(0, 2) == 0 ? Interpolation::bilinear : Interpolation::bicubic);
  drawn.unit = draws.uniform();
  return drawn;
}

void draw_steps(const std::vector<PolicyStep>& steps, const AutoAugment& policy, Draws& draws,
                std::vector<DrawnOperation>& chain) {
  for (const PolicyStep& step : steps) {
    if (draws.uniform() <= step.probability) {
      chain.push_back(draw_operation(step, policy, draws));
    }
  }
}

// Draws `count` indices of choices: all equally probable each time, or, if the policy has weights, by weight and none
// twice.
std::vector<std::size_t> choose(const AutoAugment& policy, std::int64_t count, Draws& draws) {
  std::vector<std::size_t> chosen;
  std::vector<double> weights = policy.weights;
  for (std::int64_t i = 0; i < count; ++i) {
    if (weights.empty()) {
      chosen.push_back(static_cast<std::size_t>(draws.integer(0, std::ssize(policy.choices))));
      continue;
    }
    double left = 0;
    for (const double weight : weights) {
      left += weight;
    }
    double place = draws.uniform(0, left);
    std::size_t choice = 0;
    for (std::size_t c = 0; c < weights.size(); ++c) {
      if (weights[c] > 0) {
        choice = c;
        if (place < weights[c]) {
          break;
        }
        place -= weights[c];
      }
    }
    chosen.push_back(choice);
    weights[choice] = 0;
  }
  return chosen;
}

// A weighted sum of images in float, truncated to 8 bits, as AugMix mixes its chains.
io::Image weighted_sum(const std::vector<io::Image>& images, const std::vector<float>& weights) {
  io::Image result = images.front();
  for (std::size_t p = 0; p < result.pixels.size(); ++p) {
    float sum = 0;
    for (std::size_t i = 0; i < images.size(); ++i) {
      sum += weights[i] * static_cast<float>(images[i].pixels[p]);
    }
    result.pixels[p] = static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
  }
  return result;
}

void blend_into(io::Image& image, const io::Image& other, float share) {
  for (std::size_t p = 0; p < image.pixels.size(); ++p) {
    image.pixels[p] = blend(image.pixels[p], other.pixels[p], share);
  }
}

// The share with which each chain must be blended in, one after the other, so that it has its weight in the end (timm's
// `_calc_blended_weights`).
std::vector<float> blended_weights(const std::vector<float>& weights, float share) {
  std::vector<float> result(weights.size());
  double left = 1;
  for (std::size_t i = weights.size(); i-- > 0;) {
    const double alpha = static_cast<double>(weights[i] * share) / left;
    left *= 1 - alpha;
    result[i] = static_cast<float>(alpha);
  }
  return result;
}

}  // namespace

Operation operation_named(std::string_view name) {
  const auto found = std::ranges::find(operation_names, name);
  check(found != operation_names.end(), "there is no augmentation '{}'", name);
  return static_cast<Operation>(found - operation_names.begin());
}

std::string_view name_of(Operation operation) { return operation_names.at(static_cast<std::size_t>(operation)); }

DrawnAugmentation draw_augmentation(const AutoAugment& policy, Draws& draws) {
  DrawnAugmentation drawn;
  const bool mixes = policy.kind == AutoAugment::Kind::augmix;
  if (mixes) {
    std::vector<double> shares;
    double sum = 0;
    for (std::int64_t i = 0; i < policy.mix_width; ++i) {
      shares.push_back(draws.gamma(policy.mix_alpha));
      sum += shares.back();
    }
    for (const double share : shares) {
      drawn.weights.push_back(static_cast<float>(sum > 0 ? share / sum : 1.0 / static_cast<double>(shares.size())));
    }
    drawn.blend = static_cast<float>(draws.beta(policy.mix_alpha, policy.mix_alpha));
  }
  for (std::int64_t chain = 0; chain < (mixes ? policy.mix_width : 1); ++chain) {
    std::int64_t count = policy.num_layers;
    if (mixes) {
      count = policy.mix_depth > 0 ? policy.mix_depth : draws.integer(1, 4);
    }
    drawn.chains.emplace_back();
    for (const std::size_t choice : choose(policy, count, draws)) {
      draw_steps(policy.choices[choice], policy, draws, drawn.chains.back());
    }
  }
  return drawn;
}

void augment(io::Image& image, const DrawnOperation& drawn, double translate_pct, Color fill) {
  // The arguments are those of timm's LEVEL_TO_ARG.
  const double share = drawn.level / 10;
  const auto negated = [&](double value) { return drawn.negative ? -value : value; };
  const auto enhancing = [&] { return share * 1.8 + 0.1; };
  const auto increasing = [&] { return std::max(0.1, 1.0 + negated(share * 0.9)); };
  const auto between = [&](double low, double high) { return std::clamp(low + (high - low) * share, low, high); };
  const auto bits = [&] { return static_cast<int>(share * 4); };
  const auto affine = [&](const std::array<double, 6>& matrix) {
    transform_affine(image, matrix, drawn.interpolation, fill);
  };
  const auto keep_bits = [&](int kept) { posterize(image, std::clamp(kept, 0, 8)); };
  const auto threshold = [&] { return std::min(256, static_cast<int>(share * 256)); };
  switch (drawn.operation) {
    case Operation::auto_contrast:
      return auto_contrast(image);
    case Operation::equalize:
      return equalize(image);
    case Operation::invert:
      return invert(image);
    case Operation::rotate:
      return rotate(image, negated(share * 30.0), drawn.interpolation, fill);
    case Operation::posterize:
      return keep_bits(bits());
    case Operation::posterize_increasing:
      return keep_bits(4 - bits());
    case Operation::posterize_original:
      return keep_bits(bits() + 4);
    case Operation::solarize:
      return solarize(image, threshold());
    case Operation::solarize_increasing:
      return solarize(image, 256 - threshold());
    case Operation::solarize_add:
      return solarize_add(image, std::min(128, static_cast<int>(share * 110)));
    case Operation::color:
      return adjust_saturation(image, enhancing());
    case Operation::color_increasing:
      return adjust_saturation(image, increasing());
    case Operation::contrast:
      return adjust_contrast(image, enhancing());
    case Operation::contrast_increasing:
      return adjust_contrast(image, increasing());
    case Operation::brightness:
      return adjust_brightness(image, enhancing());
    case Operation::brightness_increasing:
      return adjust_brightness(image, increasing());
    case Operation::sharpness:
      return adjust_sharpness(image, enhancing());
    case Operation::sharpness_increasing:
      return adjust_sharpness(image, increasing());
    case Operation::shear_x:
      return affine({1, negated(share * 0.3), 0, 0, 1, 0});
    case Operation::shear_y:
      return affine({1, 0, 0, negated(share * 0.3), 1, 0});
    case Operation::translate_x_rel:
      return affine({1, 0, negated(share * translate_pct) * static_cast<double>(image.width), 0, 1, 0});
    case Operation::translate_y_rel:
      return affine({1, 0, 0, 0, 1, negated(share * translate_pct) * static_cast<double>(image.height)});
    case Operation::desaturate:
      return adjust_saturation(image, std::clamp(1.0 - between(0.5, 1.0), 0.0, 1.0));
    case Operation::gaussian_blur:
      return gaussian_blur(image, between(0.1, 2.0));
    case Operation::gaussian_blur_rand:
      return gaussian_blur(image, 0.1 + (2.0 * between(0, 1) - 0.1) * drawn.unit);
  }
}

void augment(io::Image& image, const DrawnAugmentation& drawn, const AutoAugment& policy, Color fill) {
  const auto run = [&](io::Image& augmented, const std::vector<DrawnOperation>& chain) {
    for (const DrawnOperation& operation : chain) {
      augment(augmented, operation, policy.translate_pct, fill);
    }
  };
  if (drawn.weights.empty()) {
    for (const std::vector<DrawnOperation>& chain : drawn.chains) {
      run(image, chain);
    }
    return;
  }
  std::vector<io::Image> ends(drawn.chains.size(), image);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    run(ends[i], drawn.chains[i]);
  }
  if (policy.mix_blended) {
    const std::vector<float> shares = blended_weights(drawn.weights, drawn.blend);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      blend_into(image, ends[i], shares[i]);
    }
  } else {
    blend_into(image, weighted_sum(ends, drawn.weights), drawn.blend);
  }
}

}  // namespace vitrail::data
