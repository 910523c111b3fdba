#include "vitrail/explain/drawing/drawing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "vitrail/data/resize.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

constexpr std::int64_t largest_on_sheet = 1024;

}  // namespace

std::int64_t text_width(std::string_view text, std::int64_t scale) {
  return scale * letter_width * std::ssize(letters_of(text));
}

void draw_text(io::Image& image, std::int64_t left, std::int64_t top, std::string_view text, std::int64_t scale) {
  constexpr std::array<std::uint8_t, 3> ink = {31, 39, 51};
  for (const Letter& letter : letters_of(text)) {
    for (std::int64_t i = 0; i < letter_pixels * letter_height * scale * scale; ++i) {
      const std::int64_t x = i % (letter_pixels * scale);
      const std::int64_t y = i / (letter_pixels * scale);
      const bool inside = left + x >= 0 && left + x < image.width && top + y >= 0 && top + y < image.height;
      if (inside && is_dark(letter, x / scale, y / scale)) {
        std::copy(ink.begin(), ink.end(), image.at(left + x, top + y));
      }
    }
    left += letter_width * scale;
  }
}

io::Image white_image(std::int64_t width, std::int64_t height) {
  io::Image image(width, height);
  std::fill(image.pixels.begin(), image.pixels.end(), std::uint8_t{255});
  return image;
}

void paste(io::Image& onto, const io::Image& image, std::int64_t left, std::int64_t top) {
  check(left >= 0 && top >= 0 && left + image.width <= onto.width && top + image.height <= onto.height,
        "an image of {}x{} pixels does not lie inside one of {}x{} at {},{}", image.width, image.height, onto.width,
        onto.height, left, top);
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::copy_n(image.at(0, y), image.width * 3, onto.at(left, top + y));
  }
}

io::Image magnified(const io::Image& image, std::int64_t zoom) {
  io::Image large(image.width * zoom, image.height * zoom);
  for (std::int64_t y = 0; y < large.height; ++y) {
    for (std::int64_t x = 0; x < large.width; ++x) {
      std::copy_n(image.at(x / zoom, y / zoom), 3, large.at(x, y));
    }
  }
  return large;
}

std::int64_t zoom_to_be_seen(std::int64_t width, std::int64_t height, std::int64_t smallest) {
  const auto [shorter, longer] = std::minmax({std::max<std::int64_t>(width, 1), std::max<std::int64_t>(height, 1)});
  return std::max<std::int64_t>(1, std::min((smallest - 1 + shorter) / shorter, 8 * smallest / longer));
}

io::Image large_enough(const io::Image& image, std::int64_t smallest) {
  return magnified(image, zoom_to_be_seen(image.width, image.height, smallest));
}

io::Image small_enough(const io::Image& image, std::int64_t largest) {
  const std::int64_t longest = std::max(image.width, image.height);
  if (longest <= largest) {
    return image;
  }
  const auto shrunk = [&](std::int64_t side) { return std::max<std::int64_t>(1, side * largest / longest); };
  return data::resize(image, shrunk(image.width), shrunk(image.height), data::Interpolation::bicubic);
}

io::Image fit_for_sheet(const io::Image& image) { return small_enough(large_enough(image), largest_on_sheet); }

io::Image captioned(const io::Image& image, std::string_view text, std::int64_t scale) {
  constexpr std::int64_t fewest_letters = 24;
  const std::int64_t line_height = (letter_height + 2) * scale;
  const std::string lines =
      io::wrapped(text, static_cast<std::size_t>(std::max(image.width / (letter_width * scale), fewest_letters)));
  std::int64_t width = image.width;
  std::int64_t height = 2 * scale;
  const auto each_line = [&](const auto& use) {
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', begin), lines.size());
      use(std::string_view(lines).substr(begin, end - begin));
      begin = end + 1;
    }
  };
  each_line([&](std::string_view line) {
    width = std::max(width, text_width(line, scale));
    height += line_height;
  });
  io::Image result = white_image(width, height + image.height);
  std::int64_t top = scale;
  each_line([&](std::string_view line) {
    draw_text(result, 0, top, line, scale);
    top += line_height;
  });
  paste(result, image, 0, height);
  return result;
}

}  // namespace vitrail::explain
