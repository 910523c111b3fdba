#include "vitrail/data/augment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/data/pixels.h"
#include "vitrail/data/rounding.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

// Blends every sample with the value `with`.
void blend_all(io::Image& image, int with, double factor) {
  std::array<std::uint8_t, 256> table;
  for (int v = 0; v < 256; ++v) {
    table[static_cast<std::size_t>(v)] = blend(with, v, static_cast<float>(factor));
  }
  for (std::uint8_t& sample : image.pixels) {
    sample = table[sample];
  }
}

struct Hsv {
  std::uint8_t h = 0;
  std::uint8_t s = 0;
  std::uint8_t v = 0;
};

// Pillow's conversions between RGB and HSV. They mix float and double as Pillow does, because the rounding decides
// pixels.
Hsv to_hsv(const std::uint8_t* rgb) {
  const int r = rgb[0];
  const int g = rgb[1];
  const int b = rgb[2];
  const int most = std::max({r, g, b});
  const int least = std::min({r, g, b});
  Hsv hsv;
  hsv.v = static_cast<std::uint8_t>(most);
  if (most == least) {
    return hsv;
  }
  const auto range = static_cast<float>(most - least);
  const float s = range / static_cast<float>(most);
  const float rc = static_cast<float>(most - r) / range;
  const float gc = static_cast<float>(most - g) / range;
  const float bc = static_cast<float>(most - b) / range;
  float h = 0;
  if (r == most) {
    h = bc - gc;
  } else if (g == most) {
    h = static_cast<float>(2.0 + rc - bc);
  } else {
    h = static_cast<float>(4.0 + gc - rc);
  }
  // h / 6 is in [-1/6, 5/6]: the next lines take its fractional part.
  const double turns = h / 6.0 + 1.0;
  h = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  hsv.h = static_cast<std::uint8_t>(std::clamp(static_cast<int>(h * 255.0), 0, 255));
  hsv.s = static_cast<std::uint8_t>(std::clamp(static_cast<int>(s * 255.0), 0, 255));
  return hsv;
}

void to_rgb(const Hsv& hsv, std::uint8_t* rgb) {
  const auto store = [&](std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    rgb[0] = r;
    rgb[1] = g;
    rgb[2] = b;
  };
  const std::uint8_t v = hsv.v;
  if (hsv.s == 0) {
    return store(v, v, v);
  }
  const double sextant = hsv.h * 6.0 / 255.0;
  const int i = static_cast<int>(sextant);
  const auto f = static_cast<float>(sextant - static_cast<float>(i));
  const auto fs = static_cast<float>(hsv.s / 255.0);
  const auto part = [&](double share) { return static_cast<std::uint8_t>(round_as_pillow(v * share)); };
  const std::uint8_t p = part(1.0 - fs);
  const std::uint8_t q = part(1.0 - fs * f);
  const std::uint8_t t = part(1.0 - fs * (1.0 - f));
  switch (i % 6) {
    case 0:
      return store(v, t, p);
    case 1:
      return store(q, v, p);
    case 2:
      return store(p, v, t);
    case 3:
      return store(p, q, v);
    case 4:
      return store(t, p, v);
    default:
      return store(v, p, q);
  }
}

}  // namespace

Region random_resized_crop(std::int64_t width, std::int64_t height, std::pair<double, double> scale,
                           std::pair<double, double> ratio, Draws& draws) {
  const auto area = static_cast<double>(width * height);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = draws.uniform(scale.first, scale.second) * area;
    const double aspect = std::exp(draws.uniform(std::log(ratio.first), std::log(ratio.second)));
    const std::int64_t w = round_half_even(std::sqrt(target * aspect));
    const std::int64_t h = round_half_even(std::sqrt(target / aspect));
    if (w > 0 && h > 0 && w <= width && h <= height) {
      const std::int64_t y = draws.integer(0, height - h + 1);
      return {draws.integer(0, width - w + 1), y, w, h};
    }
  }
  std::int64_t w = width;
  std::int64_t h = height;
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  if (aspect < ratio.first) {
    h = std::clamp(round_half_even(static_cast<double>(w) / ratio.first), std::int64_t{1}, height);
  } else if (aspect > ratio.second) {
    w = std::clamp(round_half_even(static_cast<double>(h) * ratio.second), std::int64_t{1}, width);
  }
  return {(width - w) / 2, (height - h) / 2, w, h};
}

void adjust_brightness(io::Image& image, double factor) { blend_all(image, 0, factor); }

void adjust_contrast(io::Image& image, double factor) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    sum += luma(image.pixels.data() + i);
  }
  const auto count = static_cast<double>(image.width * image.height);
  blend_all(image, static_cast<int>(round_as_pillow(static_cast<double>(sum) / count)), factor);
}

void adjust_saturation(io::Image& image, double factor) {
  const auto alpha = static_cast<float>(factor);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* rgb = image.pixels.data() + i;
    const int gray = luma(rgb);
    rgb[0] = blend(gray, rgb[0], alpha);
    rgb[1] = blend(gray, rgb[1], alpha);
    rgb[2] = blend(gray, rgb[2], alpha);
  }
}

void adjust_hue(io::Image& image, double factor) {
  check(factor >= -0.5 && factor <= 0.5, "the hue can be turned by -0.5 to 0.5 of the circle, not by {}", factor);
  const auto turn = static_cast<std::uint8_t>(static_cast<std::int32_t>(factor * 255));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    Hsv hsv = to_hsv(image.pixels.data() + i);
    hsv.h = static_cast<std::uint8_t>(hsv.h + turn);  // wraps around
    to_rgb(hsv, image.pixels.data() + i);
  }
}

void to_grayscale(io::Image& image) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::fill_n(image.pixels.data() + i, 3, static_cast<std::uint8_t>(luma(image.pixels.data() + i)));
  }
}

bool ColorJitter::changes_anything() const {
  const std::pair<double, double> one = {1, 1};
  const std::pair<double, double> zero = {0, 0};
  return brightness != one || contrast != one || saturation != one || hue != zero;
}

void jitter_color(io::Image& image, const ColorJitter& jitter, Draws& draws) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(i) + 1))]);
  }
  const auto factor = [&](std::pair<double, double> range) { return draws.uniform(range.first, range.second); };
  const std::array<double, 4> factors = {factor(jitter.brightness), factor(jitter.contrast), factor(jitter.saturation),
                                         factor(jitter.hue)};
  for (const int step : order) {
    if (step == 0 && jitter.brightness != std::pair(1.0, 1.0)) {
      adjust_brightness(image, factors[0]);
    } else if (step == 1 && jitter.contrast != std::pair(1.0, 1.0)) {
      adjust_contrast(image, factors[1]);
    } else if (step == 2 && jitter.saturation != std::pair(1.0, 1.0)) {
      adjust_saturation(image, factors[2]);
    } else if (step == 3 && jitter.hue != std::pair(0.0, 0.0)) {
      adjust_hue(image, factors[3]);
    }
  }
}

void erase_randomly(float* image, std::int64_t channels, std::int64_t height, std::int64_t width,
                    const RandomErasing& options, Draws& draws) {
  if (draws.uniform() >= options.probability) {
    return;
  }
  const auto area = static_cast<double>(height * width);
  const double log_aspect = std::log(1 / 0.3);
  const std::int64_t count = draws.integer(1, options.max_count + 1);
  for (std::int64_t box = 0; box < count; ++box) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = draws.uniform(0.02, 1.0 / 3.0) * area / static_cast<double>(count);
      const double aspect = std::exp(draws.uniform(-log_aspect, log_aspect));
      const std::int64_t h = round_half_even(std::sqrt(target * aspect));
      const std::int64_t w = round_half_even(std::sqrt(target / aspect));
      if (w >= width || h >= height) {
        continue;
      }
      const std::int64_t top = draws.integer(0, height - h + 1);
      const std::int64_t left = draws.integer(0, width - w + 1);
      for (std::int64_t c = 0; c < channels; ++c) {
        const double color = options.mode == EraseMode::color ? draws.normal() : 0.0;
        for (std::int64_t y = top; y < top + h; ++y) {
          float* row = image + (c * height + y) * width;
          std::generate(row + left, row + left + w,
                        [&] { return static_cast<float>(options.mode == EraseMode::pixel ? draws.normal() : color); });
        }
      }
      break;
    }
  }
}

}  // namespace vitrail::data
