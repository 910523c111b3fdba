#include "vitrail/data/mix.h"

#include <algorithm>
#include <cmath>

#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

double box_lambda(const Mixture& box, std::int64_t height, std::int64_t width) {
  const auto area = static_cast<double>((box.bottom - box.top) * (box.right - box.left));
  return 1.0 - area / static_cast<double>(height * width);
}

// A box whose sides are each drawn between two shares of the image's sides (timm's rand_bbox_minmax).
Mixture minmax_box(std::pair<double, double> minmax, std::int64_t height, std::int64_t width, Draws& draws) {
  const auto side = [&](std::int64_t whole) {
    const auto low = static_cast<std::int64_t>(static_cast<double>(whole) * minmax.first);
    const auto high = static_cast<std::int64_t>(static_cast<double>(whole) * minmax.second);
    return draws.integer(low, std::max(high, low + 1));
  };
  Mixture box;
  box.cutmix = true;
  const std::int64_t cut_height = side(height);
  const std::int64_t cut_width = side(width);
  box.top = draws.integer(0, height - cut_height + 1);
  box.left = draws.integer(0, width - cut_width + 1);
  box.bottom = box.top + cut_height;
  box.right = box.left + cut_width;
  box.lambda = box_lambda(box, height, width);
  return box;
}

}  // namespace

MixMode mix_mode_named(std::string_view name) {
  if (name == "batch") {
    return MixMode::batch;
  }
  if (name == "pair") {
    return MixMode::pair;
  }
  if (name == "elem") {
    return MixMode::elem;
  }
  check(name == "half", "unknown way to mix '{}': expected batch, pair, elem or half", name);
  return MixMode::half;
}

Mixture cutmix_box(double lambda, std::int64_t center_y, std::int64_t center_x, std::int64_t height,
                   std::int64_t width) {
  const double ratio = std::sqrt(1.0 - lambda);
  const auto cut_height = static_cast<std::int64_t>(static_cast<double>(height) * ratio);
  const auto cut_width = static_cast<std::int64_t>(static_cast<double>(width) * ratio);
  Mixture box;
  box.cutmix = true;
  box.top = std::clamp(center_y - cut_height / 2, std::int64_t{0}, height);
  box.bottom = std::clamp(center_y + (cut_height + 1) / 2, std::int64_t{0}, height);
  box.left = std::clamp(center_x - cut_width / 2, std::int64_t{0}, width);
  box.right = std::clamp(center_x + (cut_width + 1) / 2, std::int64_t{0}, width);
  box.lambda = box_lambda(box, height, width);
  return box;
}

Mixture draw_mixture(const MixOptions& options, std::int64_t height, std::int64_t width, Draws& draws) {
  if (!options.enabled() || draws.uniform() >= options.mixup_prob) {
    return {};
  }
  const double cutmix = options.cutmix_minmax ? 1.0 : options.cutmix;  // as in timm
  const bool use_cutmix = cutmix > 0 && (options.mixup <= 0 || draws.uniform() < options.mixup_switch_prob);
  if (use_cutmix && options.cutmix_minmax) {
    return minmax_box(*options.cutmix_minmax, height, width, draws);
  }
  const double alpha = use_cutmix ? cutmix : options.mixup;
  const double lambda = draws.beta(alpha, alpha);
  if (use_cutmix) {
    const std::int64_t center_y = draws.integer(0, height);
    return cutmix_box(lambda, center_y, draws.integer(0, width), height, width);
  }
  Mixture mixture;
  mixture.lambda = lambda;
  return mixture;
}

std::vector<Mixture> draw_mixtures(const MixOptions& options, std::int64_t batch, std::int64_t height,
                                   std::int64_t width, Draws& draws) {
  std::vector<Mixture> mixtures(static_cast<std::size_t>(batch));
  const auto draw = [&] { return draw_mixture(options, height, width, draws); };
  const auto first_half = mixtures.begin() + (batch + 1) / 2;
  switch (options.mode) {
    case MixMode::batch:
      std::ranges::fill(mixtures, draw());
      break;
    case MixMode::elem:
      std::ranges::generate(mixtures, draw);
      break;
    case MixMode::half:
      std::generate(mixtures.begin(), first_half, draw);
      break;
    case MixMode::pair:
      std::generate(mixtures.begin(), first_half, draw);
      std::copy(mixtures.begin(), first_half, mixtures.rbegin());
      break;
  }
  return mixtures;
}

void mix_images(const Tensor& x, std::span<const Mixture> mixtures) {
  check(x.rank() == 4 && x.is_contiguous(), "only a contiguous batch [B, C, H, W] can be mixed, not {}", x.shape());
  check(std::ssize(mixtures) == x.size(0), "{} mixtures cannot be made of {} images", mixtures.size(), x.size(0));
  const std::int64_t batch = x.size(0);
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  const std::int64_t rows = x.size(1) * height;
  const std::int64_t image = rows * width;
  const auto mix_one = [&](const Mixture& mixture, float* own, const float* other) {
    if (mixture.lambda == 1.0) {
      return;
    }
    if (mixture.cutmix) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t y = row % height;
        if (y >= mixture.top && y < mixture.bottom) {
          const std::int64_t offset = row * width;
          std::copy(other + offset + mixture.left, other + offset + mixture.right, own + offset + mixture.left);
        }
      }
      return;
    }
    const auto own_share = static_cast<float>(mixture.lambda);
    const auto other_share = static_cast<float>(1.0 - mixture.lambda);
    for (std::int64_t j = 0; j < image; ++j) {
      own[j] = own[j] * own_share + other[j] * other_share;
    }
  };
  std::vector<float> first(static_cast<std::size_t>(image));  // the original of the first, for its partner
  for (std::int64_t i = 0; i < (batch + 1) / 2; ++i) {
    const std::int64_t j = batch - 1 - i;
    float* a = x.data<float>() + i * image;
    float* b = x.data<float>() + j * image;
    std::copy_n(a, image, first.begin());
    mix_one(mixtures[static_cast<std::size_t>(i)], a, b);
    if (i != j) {
      mix_one(mixtures[static_cast<std::size_t>(j)], b, first.data());
    }
  }
}

Tensor mix_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, std::span<const Mixture> mixtures,
                  double smoothing) {
  check(mixtures.size() == labels.size(), "{} mixtures cannot be made of {} labels", mixtures.size(), labels.size());
  const double off = smoothing / static_cast<double>(num_classes);
  const double on = 1.0 - smoothing + off;
  Tensor targets = Tensor::full({std::ssize(labels), num_classes}, 0.0);
  float* row = targets.data<float>();
  const auto add = [&](std::int64_t label, double share) {
    check(label >= 0 && label < num_classes, "the label {} is not below the number of classes, {}", label, num_classes);
    for (std::int64_t c = 0; c < num_classes; ++c) {
      row[c] += static_cast<float>(c == label ? on : off) * static_cast<float>(share);
    }
  };
  for (std::size_t i = 0; i < labels.size(); ++i, row += num_classes) {
    add(labels[i], mixtures[i].lambda);
    add(labels[labels.size() - 1 - i], 1.0 - mixtures[i].lambda);
  }
  return targets;
}

Tensor smooth_labels(std::span<const std::int64_t> labels, std::int64_t num_classes, double smoothing) {
  return mix_labels(labels, num_classes, std::vector<Mixture>(labels.size()), smoothing);
}

}  // namespace vitrail::data
