/// \file
/// Contact sheets of rendered scenes.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/scene.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// Scenes drawn with `side` pixels and enlarged, the boxes of their objects with their numbers, and above what is known
/// of them, captions and questions, or their class of a task, in rows of four. Throws Error if there are none.
io::Image scene_sheet(const std::vector<data::Scene>& scenes, std::int64_t side,
                      data::SceneTask task = data::SceneTask::none);
/// Scenes of cells with their boxes, of white cells and platelets with the first letter of what they are. Throws Error
/// if there are none.
io::Image cell_sheet(const std::vector<data::CellScene>& scenes, std::int64_t side);

}  // namespace vitrail::explain
