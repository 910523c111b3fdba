#include "vitrail/explain/box_overlay.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/explain/drawing/drawing.h"

namespace vitrail::explain {
namespace {

void draw_frame(io::Image& image, const data::Box& box, std::int64_t out, Color color) {
  const std::int64_t left = std::llround(box.x0) - out;
  const std::int64_t top = std::llround(box.y0) - out;
  const std::int64_t right = std::llround(box.x1) + out - 1;
  const std::int64_t bottom = std::llround(box.y1) + out - 1;
  const auto dot = [&](std::int64_t x, std::int64_t y) {
    if (x >= 0 && y >= 0 && x < image.width && y < image.height) {
      std::ranges::copy(color, image.at(x, y));
    }
  };
  for (std::int64_t x = left; x <= right; ++x) {
    dot(x, top);
    dot(x, bottom);
  }
  for (std::int64_t y = top; y <= bottom; ++y) {
    dot(left, y);
    dot(right, y);
  }
}

void draw_tag(io::Image& image, const NamedBox& named) {
  if (named.text.empty()) {
    return;
  }
  io::Image tag = white_image(text_width(named.text, 1) + 2, letter_height + 1);
  draw_text(tag, 1, 1, named.text, 1);
  for (std::size_t i = 0; i < tag.pixels.size(); ++i) {  // the ground in the box's colour
    tag.pixels[i] = static_cast<std::uint8_t>(tag.pixels[i] * (named.color[i % 3] + 2 * 255) / (3 * 255));
  }
  if (tag.width > image.width || tag.height > image.height) {
    return;
  }
  const auto inside = [](double place, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llround(place), 0, most);
  };
  paste(image, tag, inside(named.box.x0 - 1, image.width - tag.width),
        inside(named.box.y0 - static_cast<double>(tag.height), image.height - tag.height));
}

}  // namespace

Color class_color(std::int64_t index) {
  // Okabe and Ito's colours, which people of every colour vision tell apart, without black.
  constexpr std::array<Color, 7> colors = {
      {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {0, 114, 178}, {213, 94, 0}, {204, 121, 167}}};
  return colors[static_cast<std::size_t>(index) % colors.size()];
}

void draw_boxes(io::Image& image, const std::vector<NamedBox>& boxes) {
  for (auto named = boxes.rbegin(); named != boxes.rend(); ++named) {
    draw_frame(image, named->box, 2, {0, 0, 0});
    draw_frame(image, named->box, 1, named->color);
    draw_frame(image, named->box, 0, named->color);
  }
  for (auto named = boxes.rbegin(); named != boxes.rend(); ++named) {
    draw_tag(image, *named);
  }
}

}  // namespace vitrail::explain
