#include "vitrail/explain/positions.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"

namespace vitrail::explain {
namespace {

using nn::Size2;

constexpr std::int64_t caption_scale = 2;

// The index of a place on the grid, counted row by row.
std::int64_t number_of(const Query& place, const Size2& grid) {
  check(place.row >= 0 && place.row < grid[0] && place.column >= 0 && place.column < grid[1],
        "there is no patch in row {}, column {} of {} x {}", place.row, place.column, grid[0], grid[1]);
  return place.row * grid[1] + place.column;
}

Query place_at(std::int64_t row, std::int64_t column) {
  return {.kind = Query::Kind::patch, .row = row, .column = column};
}

struct Bounds {
  float low = 0;
  float high = 0;
};
Bounds bounds_of(const std::vector<Tensor>& maps) {
  Bounds bounds = {INFINITY, -INFINITY};
  for (const Tensor& map : maps) {
    for (const float value : map.values()) {
      bounds = {std::min(bounds.low, value), std::max(bounds.high, value)};
    }
  }
  return bounds;
}

// Puts `upper` above `lower`, with white between and beside them.
io::Image stacked(const io::Image& upper, const io::Image& lower, std::int64_t gap) {
  io::Image result = white_image(std::max(upper.width, lower.width), upper.height + gap + lower.height);
  paste(result, upper, 0, 0);
  paste(result, lower, 0, upper.height + gap);
  return result;
}

// "0", "1", … up to `count` of them.
std::vector<std::string> numbers(std::int64_t count) {
  std::vector<std::string> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(std::to_string(i));
  }
  return result;
}

// Draws the table of the vectors [N, D], and below it the similarities of every patch.
io::Image table_image(const Tensor& positions, const Size2& grid) {
  std::vector<Tensor> maps;
  for (std::int64_t n = 0; n < positions.size(0); ++n) {
    maps.push_back(similarity_map(positions, grid, place_at(n / grid[1], n % grid[1])));
  }
  const Bounds likeness = bounds_of(maps);
  std::int64_t cell = std::max<std::int64_t>(1, 56 / std::max(grid[0], grid[1]));
  std::vector<std::vector<io::Image>> rows(static_cast<std::size_t>(grid[0]));
  for (std::size_t n = 0; n < maps.size(); ++n) {
    rows[n / static_cast<std::size_t>(grid[1])].push_back(map_image(maps[n], likeness.low, likeness.high, cell));
  }
  const io::Image similarities = sheet(rows, {.rows = numbers(grid[0]), .columns = numbers(grid[1])}, 2);
  cell = std::max<std::int64_t>(1, similarities.width / positions.size(1));
  const Bounds bounds = bounds_of({positions});
  return stacked(captioned(map_image(positions, bounds.low, bounds.high, cell),
                           "position vectors: a row for each patch, a column for each element", caption_scale),
                 captioned(similarities, "cosine of each patch's vector with those of all others, by row and column",
                           caption_scale),
                 12);
}

// One row for the patch in the middle and one for the patch in the corner, a column for each head.
io::Image score_image(const models::ScorePositions& scores, const Size2& grid, std::int64_t heads, std::int64_t layer) {
  const Tensor& angles = scores.rotation.angles;
  const std::int64_t turns = !angles.defined() ? 0 : (angles.rank() == 3 ? heads : 1);
  std::vector<std::vector<Tensor>> rows;
  std::vector<Tensor> all;
  SheetLabels labels;
  for (std::int64_t head = 0; scores.bias.defined() && head < heads; ++head) {
    labels.columns.push_back(fmt::format("{}{}", turns > 0 ? "bias " : "head ", head));
  }
  for (std::int64_t head = 0; head < turns; ++head) {
    labels.columns.push_back(turns == 1 ? "all heads"
                                        : fmt::format("{}{}", scores.bias.defined() ? "turn " : "head ", head));
  }
  for (const Query& place : {place_at(grid[0] / 2, grid[1] / 2), place_at(0, 0)}) {
    rows.emplace_back();
    labels.rows.push_back(fmt::format("patch {},{}", place.row, place.column));
    for (std::int64_t head = 0; scores.bias.defined() && head < heads; ++head) {
      const std::int64_t prefix = scores.bias.size(2) - grid[0] * grid[1];
      rows.back().push_back(bias_map(scores.bias, grid, prefix, head, place));
    }
    for (std::int64_t head = 0; head < turns; ++head) {
      rows.back().push_back(rotation_map(scores.rotation, grid, head, place));
    }
    all.insert(all.end(), rows.back().begin(), rows.back().end());
  }
  const Bounds bounds = bounds_of(all);
  const std::int64_t cell = std::max<std::int64_t>(1, 112 / std::max(grid[0], grid[1]));
  std::vector<std::vector<io::Image>> images;
  for (const std::vector<Tensor>& row : rows) {
    images.emplace_back();
    for (const Tensor& map : row) {
      images.back().push_back(map_image(map, bounds.low, bounds.high, cell));
    }
  }
  const std::string what = !scores.bias.defined() ? "cosine of the rotation between this patch and all others"
                           : turns == 0           ? "bias of this patch's scores with all others"
                                        : "bias, and cosine of the rotation, between this patch and all others";
  return captioned(sheet(images, labels), fmt::format("layer {}: {}", layer, what), caption_scale);
}

}  // namespace

Tensor similarity_map(const Tensor& positions, const Size2& grid, const Query& place) {
  const auto width = static_cast<std::size_t>(positions.size(1));
  const std::vector<float> values = positions.values();
  const auto dot = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::size_t c = 0; c < width; ++c) {
      sum += static_cast<double>(values[static_cast<std::size_t>(i) * width + c]) *
             static_cast<double>(values[static_cast<std::size_t>(j) * width + c]);
    }
    return sum;
  };
  const std::int64_t here = number_of(place, grid);
  const double own = dot(here, here);
  const Tensor map = Tensor::empty({grid[0], grid[1]});
  for (std::int64_t n = 0; n < map.numel(); ++n) {
    const double lengths = std::sqrt(own * dot(n, n));
    map.data<float>()[n] = lengths > 0 ? static_cast<float>(dot(here, n) / lengths) : 0;
  }
  return map;
}

Tensor bias_map(const Tensor& bias, const Size2& grid, std::int64_t prefix, std::int64_t head, const Query& place) {
  const std::int64_t here = number_of(place, grid);
  const std::int64_t area = grid[0] * grid[1];
  check(bias.size(2) == prefix + area, "a bias of {} does not belong to {} x {} patches behind {} tokens", bias.shape(),
        grid[0], grid[1], prefix);
  const std::int64_t heads = bias.size(1);
  check(head >= all_heads && head < heads, "there is no head {} among {}", head, heads);
  const Tensor map = Tensor::zeros({grid[0], grid[1]});
  for (std::int64_t h = head == all_heads ? 0 : head; h < (head == all_heads ? heads : head + 1); ++h) {
    const Tensor row = bias.select(0, 0).select(0, h).select(0, prefix + here).narrow(0, prefix, area);
    const std::vector<float> values = row.contiguous().values();
    for (std::int64_t n = 0; n < area; ++n) {
      map.data<float>()[n] += values[static_cast<std::size_t>(n)] / static_cast<float>(head == all_heads ? heads : 1);
    }
  }
  return map;
}

Tensor rotation_map(const ops::Rotation& rotation, const Size2& grid, std::int64_t head, const Query& place) {
  const std::int64_t here = number_of(place, grid);
  const Tensor& angles = rotation.angles;
  const std::int64_t heads = angles.rank() == 3 ? angles.size(0) : 1;
  check(head >= 0 && head < heads, "there is no head {} among {}", head, heads);
  check(angles.size(-2) == grid[0] * grid[1], "angles of {} places do not belong to {} x {} patches", angles.size(-2),
        grid[0], grid[1]);
  const Tensor of_head = angles.rank() == 3 ? angles.detach().select(0, head) : angles.detach();
  const std::vector<float> theta = of_head.contiguous().values();
  const auto half = static_cast<std::size_t>(angles.size(-1));
  const Tensor map = Tensor::empty({grid[0], grid[1]});
  for (std::int64_t n = 0; n < map.numel(); ++n) {
    double sum = 0;
    for (std::size_t i = 0; i < half; ++i) {
      sum += std::cos(static_cast<double>(theta[static_cast<std::size_t>(n) * half + i]) -
                      static_cast<double>(theta[static_cast<std::size_t>(here) * half + i]));
    }
    map.data<float>()[n] = static_cast<float>(sum / static_cast<double>(half));
  }
  return map;
}

io::Image map_image(const Tensor& map, float low, float high, std::int64_t cell) {
  io::Image image(map.size(1) * cell, map.size(0) * cell);
  const std::vector<float> values = map.values();
  const float scale = high > low ? 1 / (high - low) : 0;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const float value = values[static_cast<std::size_t>(y / cell * map.size(1) + x / cell)];
      std::ranges::copy(viridis((value - low) * scale), image.at(x, y));
    }
  }
  return image;
}

bool ModelPositions::in_scores() const {
  return std::ranges::any_of(
      blocks, [](const models::ScorePositions& block) { return block.bias.defined() || block.rotation.defined(); });
}

ModelPositions positions_of(const models::VisionTransformer& model, const Size2& grid) {
  nn::Pass pass;
  const Tensor added = model.token_positions(grid, pass);
  ModelPositions result{
      .grid = grid, .added = {}, .blocks = model.score_positions(grid, pass), .num_heads = model.config().num_heads};
  if (added.defined()) {
    result.added = added.select(0, 0).narrow(0, model.position_prefix(), grid[0] * grid[1]).contiguous();
  }
  return result;
}

io::Image position_image(const ModelPositions& positions, std::int64_t layer) {
  const auto& [grid, added, blocks, num_heads] = positions;
  check(layer >= 0 && layer < std::ssize(blocks), "there is no layer {}: the model has {}", layer, blocks.size());
  const models::ScorePositions& scores = blocks[static_cast<std::size_t>(layer)];
  check(added.defined() || scores.bias.defined() || scores.rotation.defined(), "the model has no positions to draw");
  io::Image image;
  if (added.defined()) {
    image = table_image(added, grid);
  }
  if (scores.bias.defined() || scores.rotation.defined()) {
    const io::Image relative = score_image(scores, grid, num_heads, layer);
    image = added.defined() ? stacked(image, relative, 12) : relative;
  }
  return image;
}

}  // namespace vitrail::explain
