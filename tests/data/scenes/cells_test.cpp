#include "vitrail/data/scenes/cells.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

std::uint64_t hash_of_bytes(const std::vector<std::uint8_t>& bytes) {
  return hash(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// The same on every machine, as scenes of shapes.
TEST(Cells, GiveTheSameBytesEverywhere) {
  std::uint64_t pixels = 0;
  std::uint64_t masks = 0;
  for (std::int64_t index = 0; index < 50; ++index) {
    const CellScene scene = sample_cells(0, index);
    const DrawnScene drawn = draw_cells(scene, index % 5 == 0 ? 96 : 64);
    pixels = mix(pixels, hash_of_bytes(drawn.image.pixels));
    masks = mix(masks, hash_of_bytes(drawn.objects));
  }
  EXPECT_EQ(pixels, 575785335365296342U);
  EXPECT_EQ(masks, 7740708484016691992U);
}

TEST(Cells, AreAsManyAndAsLargeAsInPhotographs) {
  std::array<double, 3> counts = {};
  int cut = 0;
  int overlapping = 0;
  constexpr int scenes = 600;
  for (std::int64_t index = 0; index < scenes; ++index) {
    const CellScene scene = sample_cells(1, index);
    EXPECT_EQ(sample_cells(1, index), scene);
    ASSERT_FALSE(scene.cells.empty());
    bool overlaps = false;
    for (const Cell& cell : scene.cells) {
      counts.at(static_cast<std::size_t>(cell.kind)) += 1.0 / scenes;
      const SceneBox& box = cell.box;
      const std::int64_t x = (box.left + box.right) / 2;
      const std::int64_t y = (box.top + box.bottom) / 2;
      EXPECT_TRUE(x >= 0 && y >= 0 && x <= scene_side && y <= scene_side);
      EXPECT_EQ(cell.lobes.empty(), cell.kind != CellKind::wbc);
      cut += box.left < 0 || box.top < 0 || box.right > scene_side || box.bottom > scene_side ? 1 : 0;
      const std::int64_t low = cell.kind == CellKind::rbc ? 44 : cell.kind == CellKind::wbc ? 72 : 15;
      const std::int64_t high = cell.kind == CellKind::rbc ? 68 : cell.kind == CellKind::wbc ? 128 : 30;
      EXPECT_TRUE(box.width() >= low && box.width() <= high) << box.width();
      for (const Cell& other : scene.cells) {
        const SceneBox& b = other.box;
        overlaps = overlaps || (&other != &cell && box.left + 8 < b.right && b.left + 8 < box.right &&
                                box.top + 8 < b.bottom && b.top + 8 < box.bottom);
      }
    }
    overlapping += overlaps ? 1 : 0;
  }
  // BCCD has 11.4 red cells, 1.02 white ones and 0.99 platelets an image, of which a square is three quarters.
  EXPECT_NEAR(counts[0], 8.6, 0.9);
  EXPECT_NEAR(counts[1], 0.77, 0.12);
  EXPECT_NEAR(counts[2], 0.75, 0.15);
  EXPECT_GT(cut, scenes);
  EXPECT_GT(overlapping, scenes * 8 / 10);
}

TEST(Cells, HaveMasksOfWholeCells) {
  CellScene scene{.background = {200, 200, 200}};
  scene.cells = {{.kind = CellKind::rbc, .box = {40, 40, 104, 104}},
                 {.kind = CellKind::rbc, .box = {80, 40, 144, 104}}};
  const DrawnScene drawn = draw_cells(scene, 64);
  const std::vector<std::uint8_t> first = mask_of_cell(scene.cells[0], 64);
  EXPECT_EQ(box_of_object(first, 64, 1), (SceneBox{10, 10, 26, 26}));
  EXPECT_NEAR(static_cast<double>(area_of_object(first, 1)), 3.14159 * 64, 8);
  EXPECT_EQ(area_of_object(drawn.objects, 2), area_of_object(first, 1));
  EXPECT_LT(area_of_object(drawn.objects, 1), area_of_object(first, 1));
  // Where both are, it is darker than where one is; beside them is the background.
  EXPECT_LT(drawn.image.at(23, 18)[1] + 20, drawn.image.at(12, 18)[1]);
  EXPECT_NEAR(drawn.image.at(50, 50)[1], 200, 15);
  EXPECT_GT(drawn.image.at(12, 18)[0], drawn.image.at(12, 18)[1] + 20);  // red
  // Of a cell that the border cuts off, what is inside.
  EXPECT_EQ(box_of_object(mask_of_cell({.box = {-32, -32, 32, 32}}, 64), 64, 1), (SceneBox{0, 0, 8, 8}));
}

TEST(Cells, RefuseWhatCannotBeDrawn) {
  EXPECT_EQ(test::error_of([] { draw_cells(sample_cells(0, 0), 16); }),
            "a scene is drawn with 32 to 512 pixels a side, not 16");
  EXPECT_EQ(test::error_of([] { sample_cells(0, -1); }), "scenes are counted from 0, not -1");
}

}  // namespace
}  // namespace vitrail::data
