#include "vitrail/data/scenes/draw.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "vitrail/data/scenes/noise.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

using Rgb = std::array<std::int64_t, 3>;

// In the order of SceneColor. Backgrounds are paler, so that objects stand out from each of them.
constexpr std::array<Rgb, 8> object_palette = {{{220, 40, 40},
                                                {35, 150, 60},
                                                {45, 80, 215},
                                                {250, 220, 45},
                                                {140, 55, 170},
                                                {245, 135, 25},
                                                {250, 250, 250},
                                                {20, 20, 20}}};
constexpr std::array<Rgb, 8> background_palette = {{{205, 130, 130},
                                                    {130, 185, 140},
                                                    {140, 170, 225},
                                                    {225, 212, 140},
                                                    {175, 140, 190},
                                                    {225, 175, 125},
                                                    {215, 215, 215},
                                                    {75, 75, 75}}};

constexpr std::int64_t finer = 4;  // cells of the canvas along a pixel
constexpr std::int64_t half_a_pixel = finer * finer / 2;
constexpr std::int64_t noise_sigma = 6;  // of 255

// A cell of the canvas has one of these, or first_part + parts_an_object × object + part.
constexpr std::uint8_t sky_cell = 0;
constexpr std::uint8_t ground_cell = 1;
constexpr std::int64_t first_part = 2;
constexpr std::int64_t parts_an_object = 3;
enum class BirdPart : std::uint8_t { none, body, head, beak };
constexpr std::int64_t head_part = static_cast<std::int64_t>(BirdPart::head) - 1;
constexpr std::int64_t beak_part = static_cast<std::int64_t>(BirdPart::beak) - 1;
static_assert(first_part + parts_an_object * 80 < 256);

// The functions below ask whether the middle of cell (x, y) lies in a shape that fills `box`. All lengths are doubled,
// so that middles are whole numbers.
bool in_ellipse(const SceneBox& box, std::int64_t x, std::int64_t y) {
  const std::int64_t a = box.width();
  const std::int64_t b = box.height();
  const std::int64_t u = (2 * x + 1 - box.left - box.right) * b;
  const std::int64_t v = (2 * y + 1 - box.top - box.bottom) * a;
  return u * u + v * v <= a * b * a * b;
}

bool in_box(const SceneBox& box, std::int64_t x, std::int64_t y) {
  return x >= box.left && x < box.right && y >= box.top && y < box.bottom;
}

// A triangle with its tip in the middle of the upper side.
bool in_triangle(const SceneBox& box, std::int64_t x, std::int64_t y) {
  return in_box(box, x, y) &&
         std::abs(2 * x + 1 - box.left - box.right) * 2 * box.height() <= (2 * y + 1 - 2 * box.top) * box.width();
}

// A triangle with its tip in the middle of the right side.
bool in_pointer(const SceneBox& box, std::int64_t x, std::int64_t y) {
  return in_box(box, x, y) &&
         std::abs(2 * y + 1 - box.top - box.bottom) * 2 * box.width() <= (2 * (box.right - x) - 1) * box.height();
}

// A part of a box in 1/56 of its width and 1/42 of its height.
SceneBox part_of(const SceneBox& box, const SceneBox& part) {
  return {part.left * box.width() / 56, part.top * box.height() / 42, part.right * box.width() / 56,
          part.bottom * box.height() / 42};
}

// A bird that looks to the right, in a box that begins at (0, 0).
BirdPart part_of_bird(const SceneBox& box, std::int64_t x, std::int64_t y) {
  if (in_ellipse(part_of(box, {24, 0, 49, 25}), x, y)) {
    return BirdPart::head;
  }
  if (in_pointer(part_of(box, {47, 7, 56, 18}), x, y)) {
    return BirdPart::beak;
  }
  const SceneBox tail = part_of(box, {0, 12, 16, 32});
  const bool in_tail = in_box(tail, x, y) && (y - tail.top) * tail.width() >= x * tail.height() / 2;
  return in_tail || in_ellipse(part_of(box, {4, 15, 46, 42}), x, y) ? BirdPart::body : BirdPart::none;
}

// The part of an object that its box, on the canvas, has at a cell.
BirdPart part_at(const SceneObject& object, const SceneBox& box, std::int64_t x, std::int64_t y) {
  switch (object.kind.shape) {
    case SceneShape::circle:
      return in_ellipse(box, x, y) ? BirdPart::body : BirdPart::none;
    case SceneShape::square:
      return BirdPart::body;
    case SceneShape::triangle:
      return in_triangle(box, x, y) ? BirdPart::body : BirdPart::none;
    case SceneShape::bird:
      break;
  }
  const std::int64_t along = object.faces_left ? box.right - 1 - x : x - box.left;
  return part_of_bird({0, 0, box.width(), box.height()}, along, y - box.top);
}

// What each cell of a scene shows, [finer · side, finer · side].
std::vector<std::uint8_t> canvas_of(const Scene& scene, std::int64_t side) {
  const std::int64_t cells = finer * side;
  const auto on_canvas = [&](std::int64_t units) { return units * cells / scene_side; };
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(cells * cells), sky_cell);
  if (scene.background.ground) {
    std::fill(canvas.begin() + on_canvas(scene.background.horizon) * cells, canvas.end(), ground_cell);
  }
  for (std::size_t i = 0; i < scene.objects.size(); ++i) {
    const SceneObject& object = scene.objects[i];
    const SceneBox box = {on_canvas(object.box.left), on_canvas(object.box.top), on_canvas(object.box.right),
                          on_canvas(object.box.bottom)};
    for (std::int64_t y = box.top; y < box.bottom; ++y) {
      for (std::int64_t x = box.left; x < box.right; ++x) {
        const BirdPart part = part_at(object, box, x, y);
        if (part != BirdPart::none) {
          canvas[static_cast<std::size_t>(y * cells + x)] = static_cast<std::uint8_t>(
              first_part + parts_an_object * static_cast<std::int64_t>(i) + static_cast<std::int64_t>(part) - 1);
        }
      }
    }
  }
  return canvas;
}

// The colour of each kind of cell.
std::vector<Rgb> cell_colors(const Scene& scene) {
  const auto background = [](SceneColor color) { return background_palette[static_cast<std::size_t>(color)]; };
  const auto of_object = [](SceneColor color) { return object_palette[static_cast<std::size_t>(color)]; };
  std::vector<Rgb> colors = {background(scene.background.sky),
                             background(scene.background.ground.value_or(scene.background.sky))};
  for (const SceneObject& object : scene.objects) {
    colors.push_back(of_object(object.kind.color));
    colors.push_back(of_object(object.head));
    colors.push_back(of_object(object.beak));
  }
  return colors;
}

}  // namespace

const std::vector<std::uint8_t>& mask_of(const DrawnScene& drawn, ScenePart part) {
  return part == ScenePart::whole ? drawn.objects : part == ScenePart::head ? drawn.heads : drawn.beaks;
}

DrawnScene draw_scene(const Scene& scene, std::int64_t side) {
  check(side >= smallest_scene && side <= largest_scene, "a scene is drawn with {} to {} pixels a side, not {}",
        smallest_scene, largest_scene, side);
  check(scene.objects.size() <= 80, "a scene of {} objects cannot be drawn", scene.objects.size());
  const std::vector<std::uint8_t> canvas = canvas_of(scene, side);
  const std::vector<Rgb> colors = cell_colors(scene);
  const Philox philox(mix(scene.seed, hash("noise of a scene")), static_cast<std::uint64_t>(scene.index));
  DrawnScene drawn;
  drawn.image = io::Image(side, side);
  drawn.objects.assign(static_cast<std::size_t>(side * side), 0);
  drawn.heads = drawn.objects;
  drawn.beaks = drawn.objects;
  // Cells of a pixel that show each object, each head and each beak.
  std::vector<std::int64_t> covered(scene.objects.size());
  std::vector<std::int64_t> heads(scene.objects.size());
  std::vector<std::int64_t> beaks(scene.objects.size());
  const auto mark = [&](const std::vector<std::int64_t>& cells, std::int64_t least, std::vector<std::uint8_t>& mask,
                        std::int64_t pixel) {
    const auto most = std::ranges::max_element(cells);
    if (most != cells.end() && *most >= least) {
      mask[static_cast<std::size_t>(pixel)] = static_cast<std::uint8_t>(most - cells.begin() + 1);
    }
  };
  std::array<std::uint32_t, 4> words = {};
  std::size_t value = 0;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      Rgb sum = {0, 0, 0};
      std::int64_t bare = 0;  // cells of the background
      std::ranges::fill(covered, 0);
      std::ranges::fill(heads, 0);
      std::ranges::fill(beaks, 0);
      for (std::int64_t cell = 0; cell < finer * finer; ++cell) {
        const std::int64_t row = y * finer + cell / finer;
        const std::uint8_t code = canvas[static_cast<std::size_t>(row * finer * side + x * finer + cell % finer)];
        for (std::size_t c = 0; c < 3; ++c) {
          sum[c] += colors[code][c];
        }
        if (code < first_part) {
          ++bare;
        } else {
          const auto [object, part] = std::div(code - first_part, parts_an_object);
          ++covered[static_cast<std::size_t>(object)];
          heads[static_cast<std::size_t>(object)] += part == head_part ? 1 : 0;
          beaks[static_cast<std::size_t>(object)] += part == beak_part ? 1 : 0;
        }
      }
      const std::int64_t slope =
          (scene.background.slope_x * (2 * x + 1 - side) + scene.background.slope_y * (2 * y + 1 - side)) / (2 * side);
      for (std::size_t c = 0; c < 3; ++c, ++value) {
        if (value % 4 == 0) {
          words = philox.block(value / 4);
        }
        const std::int64_t mean = (sum[c] + bare * slope + finer * finer / 2) / (finer * finer);
        drawn.image.pixels[value] =
            static_cast<std::uint8_t>(std::clamp<std::int64_t>(mean + noise_of(words[value % 4], noise_sigma), 0, 255));
      }
      mark(covered, half_a_pixel, drawn.objects, y * side + x);
      mark(heads, half_a_pixel, drawn.heads, y * side + x);
      mark(beaks, 1, drawn.beaks, y * side + x);
    }
  }
  return drawn;
}

}  // namespace vitrail::data
