#include "vitrail/explain/segments.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/tensor/error.h"

namespace vitrail::explain {
namespace {

void check_maps(const Tensor& maps, DType dtype) {
  check(maps.rank() == 3 && maps.dtype() == dtype && maps.numel() > 0, "maps of heads are [H, rows, columns], not {}",
        maps.shape());
}

}  // namespace

Tensor class_token_maps(const Attention& attention, std::int64_t layer) {
  const auto depth = std::ssize(attention.layers);
  const std::int64_t index = layer < 0 ? depth + layer : layer;
  check(index >= 0 && index < depth, "there is no layer {}: the model has the layers 0 to {}", layer, depth - 1);
  check(!attention.grids[static_cast<std::size_t>(index)].windowed(),
        "in layer {} tokens attend in windows: there is no token that looks at the whole image", index);
  std::vector<Tensor> heads;
  for (std::int64_t head = 0; head < attention.num_heads(index); ++head) {
    heads.push_back(attention_map(attention, index, head));
  }
  Tensor maps = Tensor::empty({std::ssize(heads), heads[0].size(0), heads[0].size(1)});
  for (std::size_t head = 0; head < heads.size(); ++head) {
    maps.select(0, static_cast<std::int64_t>(head)).copy_from(heads[head]);
  }
  return maps;
}

Tensor mass_mask(const Tensor& maps, double threshold) {
  check_maps(maps, DType::f32);
  check(threshold >= 0 && threshold <= 1, "a share of the mass lies in 0 … 1, not {}", threshold);
  const Tensor dense = maps.contiguous();
  const std::int64_t places = maps.size(1) * maps.size(2);
  Tensor masks = Tensor::zeros(maps.shape(), DType::u8);
  std::vector<std::int64_t> order(static_cast<std::size_t>(places));
  for (std::int64_t head = 0; head < maps.size(0); ++head) {
    const float* values = dense.data<float>() + head * places;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return values[a] < values[b]; });
    const double total = std::accumulate(values, values + places, 0.0);
    double sum = 0;
    for (const std::int64_t place : order) {
      sum += static_cast<double>(values[place]);
      masks.data<std::uint8_t>()[head * places + place] = sum > (1 - threshold) * total ? 1 : 0;
    }
  }
  return masks;
}

std::vector<Color> segment_colors(std::int64_t count) {
  std::vector<Color> colors;
  for (std::int64_t i = 0; i < count; ++i) {  // around the circle of hues, in turns light and dark
    const double hue = 6.0 * static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(count, 1));
    const double value = count > 6 && i % 2 == 1 ? 170 : 255;
    Color color{};
    for (std::size_t c = 0; c < 3; ++c) {
      const double shifted = std::fmod(hue + (c == 0 ? 0.0 : c == 1 ? 4.0 : 2.0), 6.0);
      const double level = std::clamp(std::abs(shifted - 3.0) - 1.0, 0.0, 1.0);
      color[c] = static_cast<std::uint8_t>(std::lround(value * level));
    }
    colors.push_back(color);
  }
  return colors;
}

io::Image paint_segments(const io::Image& image, const Tensor& segments, const std::vector<Color>& colors,
                         float strength) {
  check(segments.rank() == 2 && segments.dtype() == DType::i64, "segments are [rows, columns] i64, not {}",
        segments.shape());
  const Tensor dense = segments.contiguous();
  io::Image result = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::int64_t row = y * segments.size(0) / image.height;
      const std::int64_t column = x * segments.size(1) / image.width;
      const std::int64_t segment = dense.data<std::int64_t>()[row * segments.size(1) + column];
      if (segment < 0) {
        continue;
      }
      const Color& color = colors.at(static_cast<std::size_t>(segment));
      for (std::size_t c = 0; c < 3; ++c) {
        const auto under = static_cast<float>(image.at(x, y)[c]);
        result.at(x, y)[c] =
            static_cast<std::uint8_t>(std::lround(under + strength * (static_cast<float>(color[c]) - under)));
      }
    }
  }
  return result;
}

Tensor strongest_heads(const Tensor& maps, const Tensor& masks) {
  check_maps(maps, DType::f32);
  check_maps(masks, DType::u8);
  check(maps.shape() == masks.shape(), "maps {} and masks {} do not belong together", maps.shape(), masks.shape());
  const Tensor values = maps.contiguous();
  const Tensor kept = masks.contiguous();
  const std::int64_t places = maps.size(1) * maps.size(2);
  Tensor heads = Tensor::empty({maps.size(1), maps.size(2)}, DType::i64);
  std::fill_n(heads.data<std::int64_t>(), places, std::int64_t{-1});
  std::vector<float> strongest(static_cast<std::size_t>(places), -1.0F);
  for (std::int64_t head = 0; head < maps.size(0); ++head) {
    const float* map = values.data<float>() + head * places;
    const float largest = std::max(*std::max_element(map, map + places), 1e-30F);
    for (std::int64_t place = 0; place < places; ++place) {
      float& so_far = strongest[static_cast<std::size_t>(place)];
      if (kept.data<std::uint8_t>()[head * places + place] != 0 && map[place] / largest > so_far) {
        so_far = map[place] / largest;
        heads.data<std::int64_t>()[place] = head;
      }
    }
  }
  return heads;
}

}  // namespace vitrail::explain
