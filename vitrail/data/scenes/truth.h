/// \file
/// Whether a caption is true of a scene.
#pragma once

#include <string>
#include <string_view>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

/// What caption_truth() finds out about a caption.
enum class SceneTruth { holds, fails, not_understood };

struct SceneVerdict {
  SceneTruth truth = SceneTruth::holds;
  std::string reason = {};  ///< why it does not hold, or which word is not understood; "" of a caption that holds
};

/// Judges a caption in the language of scene_captions(), with the meaning that it has there:
/// - "a small red circle": there is one (size and colour may be left out); "two small birds": there are so many, and no
///   others;
/// - "… on the left", "… on the right", "… at the top", "… at the bottom" (is_on()): one of what "a" means is there,
/// and
///   all of what a number means;
/// - "… left of …", and right of, above, below (relation_of()): between two different objects, and where there is a
///   number, between all that it means;
/// - "…, … and …": of each "a", a different object.
///
/// Capital letters and a full stop at the end change nothing. "an" and "a" are the same. All else is not understood.
SceneVerdict caption_truth(std::string_view caption, const Scene& scene);

}  // namespace vitrail::data
