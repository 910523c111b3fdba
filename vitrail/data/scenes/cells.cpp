#include "vitrail/data/scenes/cells.h"

#include <algorithm>
#include <utility>

#include "vitrail/data/scenes/noise.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

constexpr std::int64_t points_of_side = 4;  // points of a pixel along a side
constexpr std::int64_t noise_of_photographs = 3;
constexpr std::int64_t tries_a_cell = 40;
constexpr std::int64_t full_light = 256;
constexpr std::int64_t inside_ellipse = 1024;  // the largest of radius_squared() within it

// How much of red, green and blue a layer lets through, of full_light.
using Light = std::array<std::int64_t, 3>;
constexpr Light rbc_rim = {236, 194, 190};
constexpr Light rbc_middle = {252, 244, 240};
constexpr Light wbc_body = {236, 206, 240};
constexpr Light wbc_nucleus = {128, 104, 234};
constexpr Light platelet_light = {176, 164, 232};

bool chance_of(Draws& draws, std::int64_t of, std::int64_t in) { return draws.integer(0, in) < of; }

// The square of the distance from the middle of a box, of inside_ellipse at the ellipse that fills it.
std::int64_t radius_squared(const SceneBox& box, std::int64_t x, std::int64_t y) {
  const std::int64_t a = box.width();
  const std::int64_t b = box.height();
  const std::int64_t u = (2 * x + 1 - box.left - box.right) * b;
  const std::int64_t v = (2 * y + 1 - box.top - box.bottom) * a;
  return (u * u + v * v) * inside_ellipse / (a * b * a * b);
}

SceneBox box_around(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) {
  return {x - width / 2, y - height / 2, x - width / 2 + width, y - height / 2 + height};
}

// Whether the middles of two cells are further apart than a share, in eighths, of half their sizes together.
bool far_enough(const SceneBox& a, const SceneBox& b, std::int64_t eighths) {
  const std::int64_t x = a.left + a.right - b.left - b.right;
  const std::int64_t y = a.top + a.bottom - b.top - b.bottom;
  const std::int64_t reach = (a.width() + a.height() + b.width() + b.height()) / 2 * eighths / 8;
  return x * x + y * y >= reach * reach;
}

// How near two cells may be, for far_enough().
std::int64_t eighths_of(CellKind a, CellKind b) {
  if (a == CellKind::rbc && b == CellKind::rbc) {
    return 5;
  }
  return a == CellKind::platelet || b == CellKind::platelet ? 8 : 7;
}

SceneBox sample_cell_box(Draws& draws, CellKind kind) {
  std::int64_t width = 0;
  switch (kind) {
    case CellKind::rbc:
      width = draws.integer(44, 69);
      break;
    case CellKind::wbc:
      width = draws.integer(72, 129);
      break;
    case CellKind::platelet:
      width = draws.integer(15, 31);
      break;
  }
  const std::int64_t height = width * draws.integer(80, 116) / 100;
  const std::int64_t from_border = kind == CellKind::wbc ? scene_side / 8 : 0;  // photographs are taken of white cells
  const std::int64_t x = draws.integer(from_border, scene_side - from_border);
  return box_around(x, draws.integer(from_border, scene_side - from_border), width, height);
}

// A round nucleus that fills the cell, or two to four lobes around its middle.
std::vector<SceneBox> sample_lobes(Draws& draws, const SceneBox& box) {
  constexpr std::array<std::array<std::int64_t, 2>, 8> directions = {
      {{64, 0}, {45, 45}, {0, 64}, {-45, 45}, {-64, 0}, {-45, -45}, {0, -64}, {45, -45}}};
  const std::int64_t x = (box.left + box.right) / 2;
  const std::int64_t y = (box.top + box.bottom) / 2;
  const auto lobe = [&](std::int64_t cx, std::int64_t cy, std::int64_t percent) {
    return box_around(cx, cy, box.width() * percent / 100, box.height() * percent / 100);
  };
  if (chance_of(draws, 1, 4)) {
    return {lobe(x, y, draws.integer(70, 91))};
  }
  std::vector<SceneBox> lobes;
  const std::int64_t count = draws.integer(2, 5);
  const std::int64_t turn = draws.integer(0, 8);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& direction = directions.at(static_cast<std::size_t>((turn + i * 8 / (count + 1)) % 8));
    const std::int64_t distance = draws.integer(20, 27);  // percent of the cell
    lobes.push_back(lobe(x + direction[0] * box.width() * distance / 6400,
                         y + direction[1] * box.height() * distance / 6400, draws.integer(32, 45)));
  }
  return lobes;
}

void place_cell(Draws& draws, CellKind kind, std::vector<Cell>& cells) {
  for (std::int64_t i = 0; i < tries_a_cell; ++i) {
    Cell cell{.kind = kind, .box = sample_cell_box(draws, kind)};
    const auto apart = [&](const Cell& other) { return far_enough(cell.box, other.box, eighths_of(kind, other.kind)); };
    if (std::ranges::all_of(cells, apart)) {
      cell.dark = draws.integer(0, 25);
      if (kind == CellKind::rbc) {
        cell.pale = chance_of(draws, 2, 3) ? draws.integer(60, 257) : draws.integer(0, 60);
      } else if (kind == CellKind::wbc) {
        cell.lobes = sample_lobes(draws, cell.box);
      }
      cells.push_back(std::move(cell));
      return;
    }
  }
}

Light mixed(const Light& a, const Light& b, std::int64_t of_b) {
  Light light = {};
  for (std::size_t c = 0; c < light.size(); ++c) {
    light[c] = (a[c] * (full_light - of_b) + b[c] * of_b) / full_light;
  }
  return light;
}

// A cell with its boxes on a canvas of `points` × `points`.
Cell on_canvas(Cell cell, std::int64_t points) {
  const auto scaled = [&](const SceneBox& box) {
    return SceneBox{box.left * points / scene_side, box.top * points / scene_side, box.right * points / scene_side,
                    box.bottom * points / scene_side};
  };
  cell.box = scaled(cell.box);
  for (SceneBox& lobe : cell.lobes) {
    lobe = scaled(lobe);
  }
  return cell;
}

// What a cell lets through at the middle of point (x, y), whose squared distance from the cell's middle is `radius`.
Light light_of(const Cell& cell, std::int64_t x, std::int64_t y, std::int64_t radius) {
  Light light = platelet_light;
  if (cell.kind == CellKind::rbc) {
    // The pale middle fades out from half of the radius on.
    light = mixed(rbc_rim, rbc_middle, std::clamp<std::int64_t>(480 - radius, 0, full_light) * cell.pale / full_light);
  } else if (cell.kind == CellKind::wbc) {
    light = wbc_body;
    for (const SceneBox& lobe : cell.lobes) {
      const std::int64_t inside = std::clamp<std::int64_t>((inside_ellipse - radius_squared(lobe, x, y)) / 2, 0, 256);
      const Light of_lobe = mixed(wbc_body, wbc_nucleus, inside);
      std::ranges::transform(light, of_lobe, light.begin(), [](auto a, auto b) { return std::min(a, b); });
    }
  }
  const std::int64_t soft = std::clamp<std::int64_t>((inside_ellipse - radius) * 2 + 64, 0, full_light);
  light = mixed({full_light, full_light, full_light}, light, soft);
  for (std::int64_t& value : light) {
    value = value * (full_light - cell.dark) / full_light;
  }
  return light;
}

// Calls use(x, y, squared radius) for each point of the canvas that a cell on it covers.
template <class Use>
void for_each_point(const Cell& cell, std::int64_t points, const Use& use) {
  for (std::int64_t y = std::max<std::int64_t>(0, cell.box.top); y < std::min(points, cell.box.bottom); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(0, cell.box.left); x < std::min(points, cell.box.right); ++x) {
      const std::int64_t radius = radius_squared(cell.box, x, y);
      if (radius <= inside_ellipse) {
        use(x, y, radius);
      }
    }
  }
}

}  // namespace

CellScene sample_cells(std::uint64_t seed, std::int64_t index) {
  check(index >= 0, "scenes are counted from 0, not {}", index);
  Draws draws(Philox(mix(seed, hash("scene of cells")), static_cast<std::uint64_t>(index)));
  CellScene scene{.seed = seed, .index = index};
  const std::int64_t brightness = draws.integer(-8, 9);
  scene.background = {204 + brightness + draws.integer(0, 14), 203 + brightness, 205 + brightness};
  scene.slope_x = draws.integer(-20, 21);
  scene.slope_y = draws.integer(-20, 21);
  const std::int64_t white = chance_of(draws, 1, 4) ? 0 : 1 + (chance_of(draws, 1, 12) ? 1 : 0);
  constexpr std::array<std::int64_t, 6> some_platelets = {1, 1, 1, 1, 2, 3};
  const std::int64_t platelets =
      chance_of(draws, 9, 20) ? 0 : some_platelets.at(static_cast<std::size_t>(draws.integer(0, 6)));
  const std::int64_t red = draws.integer(4, 15);
  for (const auto& [kind, count] :
       {std::pair(CellKind::wbc, white), std::pair(CellKind::rbc, red), std::pair(CellKind::platelet, platelets)}) {
    for (std::int64_t i = 0; i < count; ++i) {
      place_cell(draws, kind, scene.cells);
    }
  }
  return scene;
}

DrawnScene draw_cells(const CellScene& scene, std::int64_t side) {
  check(side >= smallest_scene && side <= largest_scene, "a scene is drawn with {} to {} pixels a side, not {}",
        smallest_scene, largest_scene, side);
  check(scene.cells.size() < 256, "a scene of {} cells cannot be drawn", scene.cells.size());
  const std::int64_t points = points_of_side * side;
  constexpr std::int64_t fine = 64;  // of a step of brightness, for layers one over the other
  std::vector<std::array<std::uint16_t, 3>> canvas(static_cast<std::size_t>(points * points));
  for (auto& point : canvas) {
    for (std::size_t c = 0; c < point.size(); ++c) {
      point[c] = static_cast<std::uint16_t>(scene.background[c] * fine);
    }
  }
  DrawnScene drawn;
  drawn.image = io::Image(side, side);
  drawn.objects.assign(static_cast<std::size_t>(side * side), 0);
  drawn.heads = drawn.objects;
  drawn.beaks = drawn.objects;
  for (std::size_t i = 0; i < scene.cells.size(); ++i) {
    const Cell cell = on_canvas(scene.cells[i], points);
    for_each_point(cell, points, [&](std::int64_t x, std::int64_t y, std::int64_t radius) {
      auto& point = canvas[static_cast<std::size_t>(y * points + x)];
      const Light light = light_of(cell, x, y, radius);
      for (std::size_t c = 0; c < point.size(); ++c) {
        point[c] = static_cast<std::uint16_t>(point[c] * light[c] / full_light);
      }
    });
    const std::vector<std::uint8_t> mask = mask_of_cell(scene.cells[i], side);
    for (std::size_t pixel = 0; pixel < mask.size(); ++pixel) {
      drawn.objects[pixel] = mask[pixel] != 0 ? static_cast<std::uint8_t>(i + 1) : drawn.objects[pixel];
    }
  }
  const Philox philox(mix(scene.seed, hash("noise of cells")), static_cast<std::uint64_t>(scene.index));
  std::array<std::uint32_t, 4> words = {};
  std::size_t value = 0;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      Light sum = {};
      for (std::int64_t point = 0; point < points_of_side * points_of_side; ++point) {
        const std::int64_t row = y * points_of_side + point / points_of_side;
        const auto& light =
            canvas[static_cast<std::size_t>(row * points + x * points_of_side + point % points_of_side)];
        for (std::size_t c = 0; c < sum.size(); ++c) {
          sum[c] += light[c];
        }
      }
      const std::int64_t slope = (scene.slope_x * (2 * x + 1 - side) + scene.slope_y * (2 * y + 1 - side)) / (2 * side);
      for (std::size_t c = 0; c < sum.size(); ++c, ++value) {
        if (value % 4 == 0) {
          words = philox.block(value / 4);
        }
        const std::int64_t noise = noise_of(words[value % 4], noise_of_photographs);
        drawn.image.pixels[value] = static_cast<std::uint8_t>(
            std::clamp<std::int64_t>(sum[c] / (points_of_side * points_of_side * fine) + slope + noise, 0, 255));
      }
    }
  }
  return drawn;
}

std::vector<std::uint8_t> mask_of_cell(const Cell& cell, std::int64_t side) {
  std::vector<std::uint8_t> covered(static_cast<std::size_t>(side * side), 0);
  for_each_point(on_canvas(cell, points_of_side * side), points_of_side * side,
                 [&](std::int64_t x, std::int64_t y, std::int64_t) {
                   ++covered[static_cast<std::size_t>(y / points_of_side * side + x / points_of_side)];
                 });
  for (std::uint8_t& pixel : covered) {
    pixel = 2 * pixel >= points_of_side * points_of_side ? 1 : 0;
  }
  return covered;
}

}  // namespace vitrail::data
