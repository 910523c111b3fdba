/// \file
/// Contact sheets of rendered scenes.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/scene.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// Scenes enlarged, the boxes of their objects with their numbers, and above what is known of them, in rows of four:
/// their class of a task, or up to three of the captions and questions that are written with them. Throws Error if
/// there are none.
io::Image scene_sheet(const std::vector<data::Scene>& scenes, const data::SceneFolder& what);
/// Scenes of cells with their boxes, of white cells and platelets with the first letter of what they are. Throws Error
/// if there are none.
io::Image cell_sheet(const std::vector<data::CellScene>& scenes, std::int64_t side);

}  // namespace vitrail::explain
