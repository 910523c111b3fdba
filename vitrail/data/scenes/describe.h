/// \file
/// Sentences about scenes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

/// A sentence about a scene.
struct SceneCaption {
  std::string text;
  std::vector<std::size_t> about = {};  ///< the objects that it names, by their places in the scene

  bool operator==(const SceneCaption&) const = default;
};

/// Captions of a scene, which follow from it alone: "a small blue bird left of a large red circle". Each names one to
/// three objects, in an order drawn by lot, or a group ("two small birds": there are no others), with colours, shapes
/// and mostly sizes, and a side or a relation (relation_of()). All are true. They differ from each other unless the
/// scene has not that much to say.
std::vector<SceneCaption> scene_captions(const Scene& scene, std::int64_t count = 5);

}  // namespace vitrail::data
