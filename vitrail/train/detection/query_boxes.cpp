#include "vitrail/train/detection/query_boxes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t square_side = 120;  // pixels
constexpr std::int64_t gap = 10;
constexpr std::int64_t queries_a_row = 10;
constexpr std::int64_t most_queries = 100;  // that are drawn
constexpr explain::Color ground = {246, 247, 249};

// Green for a small box; the wider it is, the redder, and the higher, the bluer.
explain::Color color_of_size(double width, double height) {
  const auto level = [](double share) {
    return static_cast<std::uint8_t>(std::lround(210 * std::clamp(share, 0.0, 1.0)));
  };
  return {level(width), level(1 - std::max(width, height)), level(height)};
}

}  // namespace

io::Image query_boxes(std::span<const std::vector<FoundObject>> found,
                      std::span<const std::array<std::int64_t, 2>> sizes, std::int64_t num_queries) {
  check(found.size() == sizes.size(), "there are predictions for {} images, but {} sizes", found.size(), sizes.size());
  const std::int64_t count = std::min(num_queries, most_queries);
  const std::int64_t columns = std::min(count, queries_a_row);
  const std::int64_t step = square_side + gap;
  const std::int64_t high = step + explain::letter_height;
  io::Image image = explain::white_image(gap + columns * step, gap + (count + columns - 1) / columns * high);
  const auto corner = [&](std::int64_t query) {
    return std::array{gap + query % columns * step, gap + explain::letter_height + query / columns * high};
  };
  for (std::int64_t query = 0; query < count; ++query) {
    const auto [left, top] = corner(query);
    explain::draw_text(image, left, top - explain::letter_height - 2, std::to_string(query), 1);
    for (std::int64_t y = top; y < top + square_side; ++y) {
      for (std::int64_t x = left; x < left + square_side; ++x) {
        std::ranges::copy(ground, image.at(x, y));
      }
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto width = static_cast<double>(sizes[i][0]);
    const auto height = static_cast<double>(sizes[i][1]);
    for (const FoundObject& object : found[i]) {
      if (object.query >= count) {
        continue;
      }
      const data::Box box = object.box.scaled(1 / width, 1 / height);
      const auto place = [](double share) {
        return static_cast<std::int64_t>(std::lround(std::clamp(share, 0.0, 1.0) * (square_side - 2)));
      };
      const auto [left, top] = corner(object.query);
      const explain::Color color = color_of_size(box.width(), box.height());
      for (const std::int64_t pixel : {0, 1, 2, 3}) {
        std::ranges::copy(color, image.at(left + place((box.x0 + box.x1) / 2) + pixel % 2,
                                          top + place((box.y0 + box.y1) / 2) + pixel / 2));
      }
    }
  }
  return image;
}

}  // namespace vitrail::train
