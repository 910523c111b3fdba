/// \file
/// What is said of the objects of a scene: some of their attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/scenes/scene.h"

namespace vitrail::data {

/// Some attributes, as words and as a description that objects fit or do not.
struct Mention {
  std::optional<SceneSize> size = std::nullopt;
  std::optional<SceneColor> color = std::nullopt;
  std::optional<SceneShape> shape = std::nullopt;

  bool fits(const SceneObject& object) const;
  std::string words() const;   ///< "small red circle"; of any shape "small red thing"
  std::string plural() const;  ///< "small red circles"
};

/// The objects that fit, by their places in the scene.
std::vector<std::size_t> objects_that_fit(const Scene& scene, const Mention& mention);

/// The words behind "a" or "an".
std::string with_article(const std::string& words);

}  // namespace vitrail::data
