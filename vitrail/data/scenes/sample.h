/// \file
/// Scenes drawn by lot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

constexpr std::int64_t most_scene_objects = 12;

/// What images of scenes are told apart by: whether two birds are of one species, or how many objects there are.
enum class SceneTask { none, same_different, count };
inline constexpr std::array<std::string_view, 3> scene_tasks = {"none", "same-different", "count"};
inline std::string_view name_of(SceneTask task) { return scene_tasks[static_cast<std::size_t>(task)]; }

/// Which scenes sample_scene() makes.
struct SceneOptions {
  std::uint64_t seed = 0;
  std::int64_t fewest_objects = 2;
  std::int64_t most_objects = 6;
  std::set<SceneKind> holdout = {};                     ///< kinds that no scene has
  bool held_out = false;                                ///< instead, each scene has one of these kinds at least
  std::optional<SceneColor> background = std::nullopt;  ///< the one background of all scenes, without a ground
  bool overlap = false;                                 ///< objects may cover parts of each other
  SceneTask task = SceneTask::none;  ///< same_different: two birds in opposite corners, and nothing else
};

/// Throws Error if there are no such scenes.
void check_scene_options(const SceneOptions& options);

/// Scene `index`, which depends on the options and the index alone: parts of a data set are ranges of indices. No
/// object has a colour of the background, and the boxes of objects are 8 units apart at least (2 pixels of 64). In
/// every second scene with several birds, two are of one species. Throws Error as check_scene_options() does, and if so
/// many objects find no room.
///
/// With SceneOptions::overlap, boxes may cover up to a third of each other, all others together up to half of one, and
/// none a head of a bird; later objects are drawn over earlier ones.
///
/// Of SceneTask::same_different, scenes of even indices have two birds of one species. In the others the heads differ,
/// or the bodies, or both, equally often; beaks, sizes and sides tell nothing.
Scene sample_scene(const SceneOptions& options, std::int64_t index);

/// What a scene is of a task: "same" or "different", or the number of its objects.
std::string scene_class(SceneTask task, const Scene& scene);
/// All that scenes of these options can be, in natural order.
std::vector<std::string> scene_classes(const SceneOptions& options);

}  // namespace vitrail::data
