/// \file
/// Scenes drawn by lot.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

constexpr std::int64_t most_scene_objects = 12;

/// Which scenes sample_scene() makes.
struct SceneOptions {
  std::uint64_t seed = 0;
  std::int64_t fewest_objects = 2;
  std::int64_t most_objects = 6;
  std::set<SceneKind> holdout = {};                     ///< kinds that no scene has
  bool held_out = false;                                ///< instead, each scene has one of these kinds at least
  std::optional<SceneColor> background = std::nullopt;  ///< the one background of all scenes, without a ground
};

/// Throws Error if there are no such scenes.
void check_scene_options(const SceneOptions& options);

/// Scene `index`, which depends on the options and the index alone: parts of a data set are ranges of indices. No
/// object has a colour of the background, and the boxes of objects are 8 units apart at least (2 pixels of 64). In
/// every second scene with several birds, two are of one species. Throws Error as check_scene_options() does, and if so
/// many objects find no room.
Scene sample_scene(const SceneOptions& options, std::int64_t index);

}  // namespace vitrail::data
