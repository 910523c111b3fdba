#include "vitrail/explain/patch_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/segments.h"
#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

struct Spot {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

Spot middle_of_patch(const io::Image& image, const nn::Size2& grid, std::int64_t index) {
  const std::int64_t row = index / grid[1];
  const std::int64_t column = index % grid[1];
  return {(2 * column + 1) * image.width / (2 * grid[1]), (2 * row + 1) * image.height / (2 * grid[0])};
}

void draw_square(io::Image& image, const Spot& at, std::int64_t radius, const Color& color) {
  for (std::int64_t y = std::max<std::int64_t>(at.y - radius, 0); y <= std::min(at.y + radius, image.height - 1); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(at.x - radius, 0); x <= std::min(at.x + radius, image.width - 1);
         ++x) {
      std::ranges::copy(color, image.at(x, y));
    }
  }
}

void draw_line(io::Image& image, const Spot& from, const Spot& to, const Color& color) {
  const std::int64_t steps = std::max<std::int64_t>({std::abs(to.x - from.x), std::abs(to.y - from.y), 1});
  for (std::int64_t i = 0; i <= steps; ++i) {
    const Spot at = {from.x + (to.x - from.x) * i / steps, from.y + (to.y - from.y) * i / steps};
    std::ranges::copy(color, image.at(at.x, at.y));
  }
}

}  // namespace

Tensor component_colors(const Tensor& coordinates) {
  check(coordinates.rank() == 2 && coordinates.size(1) == 3, "colours are made of coordinates [N, 3], not {}",
        coordinates.shape());
  const std::int64_t count = coordinates.size(0);
  Tensor colors = coordinates.contiguous().clone();
  std::vector<float> column(static_cast<std::size_t>(count));
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < count; ++i) {
      column[static_cast<std::size_t>(i)] = colors.data<float>()[3 * i + c];
    }
    std::ranges::sort(column);
    const float low = column[static_cast<std::size_t>((count - 1) / 100)];
    const float high = column[static_cast<std::size_t>(count - 1 - (count - 1) / 100)];
    const float range = high > low ? high - low : 1.0F;
    for (std::int64_t i = 0; i < count; ++i) {
      float& value = colors.data<float>()[3 * i + c];
      value = std::clamp((value - low) / range, 0.0F, 1.0F);
    }
  }
  return colors;
}

io::Image color_patches(const Tensor& colors, std::int64_t width, std::int64_t height) {
  check(colors.rank() == 3 && colors.size(2) == 3, "colours of patches are [rows, columns, 3], not {}", colors.shape());
  const Tensor dense = colors.contiguous();
  io::Image image(width, height);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t place = y * colors.size(0) / height * colors.size(1) + x * colors.size(1) / width;
      for (std::int64_t c = 0; c < 3; ++c) {
        const float value = std::clamp(dense.data<float>()[place * 3 + c], 0.0F, 1.0F);
        image.at(x, y)[c] = static_cast<std::uint8_t>(std::lround(255 * value));
      }
    }
  }
  return image;
}

io::Image draw_matches(const io::Image& first, const nn::Size2& first_grid, const io::Image& second,
                       const nn::Size2& second_grid, const std::vector<Match>& matches) {
  constexpr std::int64_t gap = 24;
  io::Image image = white_image(first.width + gap + second.width, std::max(first.height, second.height));
  paste(image, first, 0, 0);
  paste(image, second, first.width + gap, 0);
  const std::vector<Color> colors = segment_colors(std::ssize(matches));
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const Spot from = middle_of_patch(first, first_grid, matches[i].first);
    Spot to = middle_of_patch(second, second_grid, matches[i].second);
    to.x += first.width + gap;
    draw_line(image, from, to, colors[i]);
    draw_square(image, from, 2, colors[i]);
    draw_square(image, to, 2, colors[i]);
  }
  return image;
}

}  // namespace vitrail::explain
