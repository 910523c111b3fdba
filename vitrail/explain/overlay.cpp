#include "vitrail/explain/overlay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/ops/images/interpolate.h"

namespace vitrail::explain {
namespace {

std::uint8_t to_byte(float value) { return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F))); }

// Draws a white frame with a dark line inside it around the rectangle [left, right) x [top, bottom), so that it is
// visible on any image.
void draw_frame(io::Image& image, std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) {
  for (std::int64_t y = top; y < bottom; ++y) {
    for (std::int64_t x = left; x < right; ++x) {
      const std::int64_t depth = std::min({x - left, right - 1 - x, y - top, bottom - 1 - y});
      if (depth < 3) {
        std::fill_n(image.at(x, y), 3, static_cast<std::uint8_t>(depth < 2 ? 255 : 0));
      }
    }
  }
}

// The width of the widest of some texts at scale 1.
std::int64_t widest(const std::vector<std::string>& texts) {
  std::int64_t most = 0;
  for (const std::string& text : texts) {
    most = std::max(most, text_width(text, 1));
  }
  return most;
}

// The image in the middle of a white one that is `width` pixels wide.
io::Image widened(const io::Image& image, std::int64_t width) {
  io::Image result = white_image(width, image.height);
  paste(result, image, (width - image.width) / 2, 0);
  return result;
}

// The images, enlarged by an integer factor so that they are at least `width` pixels wide. High ones would become
// huge: they get a white margin.
std::vector<std::vector<io::Image>> enlarged(std::vector<std::vector<io::Image>> rows, std::int64_t width) {
  constexpr std::int64_t highest = 2048;
  const io::Image& first = rows.front().front();
  const std::int64_t wanted = std::max<std::int64_t>(1, (width + first.width - 1) / first.width);
  const std::int64_t zoom = std::clamp<std::int64_t>(highest / std::max<std::int64_t>(first.height, 1), 1, wanted);
  const std::int64_t room = std::max(width, first.width * zoom);
  for (std::vector<io::Image>& row : rows) {
    for (io::Image& image : row) {
      image = zoom == 1 ? std::move(image) : magnified(image, zoom);
      image = image.width < room ? widened(image, room) : std::move(image);
    }
  }
  return rows;
}

}  // namespace

io::Image image_of(const Tensor& x, std::span<const double> mean, std::span<const double> std, std::int64_t smallest) {
  const Tensor one = x.rank() == 4 ? x.select(0, 0) : x;
  check(one.rank() == 3 && (one.size(0) == 3 || one.size(0) == 1),
        "an image has the shape [3, H, W] or [1, H, W], not {}", one.shape());
  const std::int64_t channels = one.size(0);
  const std::int64_t height = one.size(1);
  const std::int64_t width = one.size(2);
  check(std::ssize(mean) >= channels && std::ssize(std) >= channels, "{} channels need as many means and deviations",
        channels);
  const std::int64_t zoom = zoom_to_be_seen(width, height, smallest);
  const Tensor dense = one.contiguous();
  const float* values = dense.data<float>();
  io::Image image(width * zoom, height * zoom);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const std::int64_t plane = std::min(c, channels - 1);
        const auto p = static_cast<std::size_t>(plane);
        const float value = values[(plane * height + y / zoom) * width + column / zoom];
        image.at(column, y)[c] = to_byte(255.0F * (value * static_cast<float>(std[p]) + static_cast<float>(mean[p])));
      }
    }
  }
  return image;
}

io::Image overlay(const io::Image& image, const Tensor& map, const OverlayOptions& options) {
  check(map.rank() == 2, "a map has the shape [rows, columns], not {}", map.shape());
  const Tensor wide = ops::interpolate(map.contiguous().reshape({1, 1, map.size(0), map.size(1)}), image.height,
                                       image.width, ops::Interpolation::bilinear);
  const auto values = wide.span<float>();
  const auto [low, high] = std::ranges::minmax(map.values());
  const float range = high > low ? high - low : 1.0F;
  io::Image result = image;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Color color = inferno((values[i] - low) / range);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto under = static_cast<float>(image.pixels[i * 3 + c]);
      result.pixels[i * 3 + c] = to_byte(under + options.strength * (static_cast<float>(color[c]) - under));
    }
  }
  if (options.patch.has_value() && options.patch->kind == Query::Kind::patch) {
    const Query& query = *options.patch;
    const auto [rows, columns] = options.grid[0] > 0 ? options.grid : nn::Size2{map.size(0), map.size(1)};
    check(query.row >= 0 && query.row < rows && query.column >= 0 && query.column < columns,
          "there is no patch {},{} to frame on a grid of {} x {}", query.row, query.column, rows, columns);
    draw_frame(result, query.column * image.width / columns, query.row * image.height / rows,
               (query.column + 1) * image.width / columns, (query.row + 1) * image.height / rows);
  }
  return result;
}

io::Image sheet(const std::vector<std::vector<io::Image>>& rows, std::int64_t gap) {
  std::size_t columns = 0;
  for (const std::vector<io::Image>& row : rows) {
    columns = std::max(columns, row.size());
  }
  check(columns > 0 && !rows.front().empty(), "a sheet needs at least one image");
  const std::int64_t width = rows.front().front().width;
  const std::int64_t height = rows.front().front().height;
  io::Image result =
      white_image(static_cast<std::int64_t>(columns) * (width + gap) - gap, std::ssize(rows) * (height + gap) - gap);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const io::Image& image = rows[r][c];
      check(image.width == width && image.height == height, "the images of a sheet must have one size");
      paste(result, image, static_cast<std::int64_t>(c) * (width + gap), static_cast<std::int64_t>(r) * (height + gap));
    }
  }
  return result;
}

io::Image sheet(const std::vector<std::vector<io::Image>>& given, const SheetLabels& labels, std::int64_t gap) {
  check(!given.empty() && !given.front().empty() && given.front().front().width > 0,
        "a sheet needs at least one image");
  const std::vector<std::vector<io::Image>> rows = enlarged(given, widest(labels.columns));
  const io::Image plain = sheet(rows, gap);
  const std::int64_t width = rows.front().front().width;
  const std::int64_t height = rows.front().front().height;
  const std::int64_t columns = (plain.width + gap) / (width + gap);
  check((labels.rows.empty() || labels.rows.size() == rows.size()) &&
            (labels.columns.empty() || std::ssize(labels.columns) == columns),
        "{} and {} labels do not belong to a sheet of {} rows and {} columns", labels.rows.size(),
        labels.columns.size(), rows.size(), columns);
  const std::int64_t wanted = std::max<std::int64_t>(2, plain.width / 500);
  const std::int64_t fits = (width + gap) / std::max<std::int64_t>(1, widest(labels.columns));
  const std::int64_t scale = std::clamp<std::int64_t>(fits, 1, wanted);
  const std::int64_t left = labels.rows.empty() ? 0 : (widest(labels.rows) + 2) * scale;
  const std::int64_t top = labels.columns.empty() ? 0 : (letter_height + 2) * scale;
  io::Image result = white_image(left + plain.width, top + plain.height);
  paste(result, plain, left, top);
  for (std::size_t c = 0; c < labels.columns.size(); ++c) {
    const std::int64_t middle = left + static_cast<std::int64_t>(c) * (width + gap) + width / 2;
    draw_text(result, middle - text_width(labels.columns[c], scale) / 2, scale, labels.columns[c], scale);
  }
  for (std::size_t r = 0; r < labels.rows.size(); ++r) {
    const std::int64_t middle = top + static_cast<std::int64_t>(r) * (height + gap) + height / 2;
    draw_text(result, left - scale - text_width(labels.rows[r], scale), middle - letter_height * scale / 2,
              labels.rows[r], scale);
  }
  return result;
}

}  // namespace vitrail::explain
