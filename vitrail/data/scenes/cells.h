/// \file
/// Scenes that look like blood under a microscope: cells that overlap, with a box around each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

enum class CellKind { rbc, wbc, platelet };
/// As in the data set BCCD (Shenggan 2017), whose photographs these drawings are like: red and white blood cells.
inline constexpr std::array<std::string_view, 3> cell_kinds = {"RBC", "WBC", "Platelets"};
inline std::string_view name_of(CellKind kind) { return cell_kinds[static_cast<std::size_t>(kind)]; }

struct Cell {
  CellKind kind = CellKind::rbc;
  SceneBox box;                      ///< in units of a scene; it may reach beyond the scene
  std::int64_t pale = 0;             ///< of a red cell: how pale its middle is, 0 … 256
  std::int64_t dark = 0;             ///< how much darker it is than others, 0 … 24
  std::vector<SceneBox> lobes = {};  ///< of the nucleus of a white cell
  bool operator==(const Cell&) const = default;
};

struct CellScene {
  std::uint64_t seed = 0;
  std::int64_t index = 0;
  std::array<std::int64_t, 3> background = {};  ///< red, green and blue
  std::int64_t slope_x = 0;                     ///< how much brighter the right side is than the left one, of 255
  std::int64_t slope_y = 0;                     ///< how much brighter the bottom is than the top
  std::vector<Cell> cells = {};                 ///< at least one
  bool operator==(const CellScene&) const = default;
};

/// Scene `index`, which depends on the seed and the index alone. It has 4 to 14 red cells, mostly one white cell and up
/// to three platelets, about as many of each and as large as a square of BCCD's photographs has: red cells 0.17 to 0.27
/// of the side, white ones 0.28 to 0.5, platelets 0.06 to 0.12. Cells overlap, and some are cut off by the border; the
/// middle of each is inside. Of cells that find no room there are fewer.
CellScene sample_cells(std::uint64_t seed, std::int64_t index);

/// Draws them with integers alone, as draw_scene(). Cells let light through: where they overlap, it is darker.
/// DrawnScene::objects has the last cell of those at a pixel.
DrawnScene draw_cells(const CellScene& scene, std::int64_t side = 64);

/// [side, side] 1 where a cell covers half of a pixel at least, also where others overlap it.
std::vector<std::uint8_t> mask_of_cell(const Cell& cell, std::int64_t side);

}  // namespace vitrail::data
