/// \file
/// Scenes from the files that describe them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

/// The scenes of a scene.json that write_scenes() wrote, by their indices, which are the ids of their images. They have
/// the objects that were drawn and the colours behind them, without the slopes and the horizon. Throws Error, naming
/// the place, if the file does not fit.
std::map<std::int64_t, Scene> read_scenes(const std::filesystem::path& file);

}  // namespace vitrail::data
