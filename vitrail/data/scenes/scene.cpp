#include "vitrail/data/scenes/scene.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

std::string name_of(const SceneKind& kind) { return fmt::format("{} {}", name_of(kind.color), name_of(kind.shape)); }

std::vector<SceneKind> all_scene_kinds() {
  std::vector<SceneKind> kinds;
  for (std::size_t color = 0; color < scene_colors.size(); ++color) {
    for (std::size_t shape = 0; shape < scene_shapes.size(); ++shape) {
      kinds.push_back({static_cast<SceneColor>(color), static_cast<SceneShape>(shape)});
    }
  }
  return kinds;
}

SceneColor scene_color(std::string_view name) {
  const auto found = std::ranges::find(scene_colors, name);
  const std::vector<std::string> names(scene_colors.begin(), scene_colors.end());
  check(found != scene_colors.end(), "scenes have no colour '{}'{}: there are {}", name, io::did_you_mean(name, names),
        io::quoted_list(names, "and"));
  return static_cast<SceneColor>(found - scene_colors.begin());
}

SceneKind scene_kind(std::string_view name) {
  std::vector<std::string> names;
  for (const SceneKind& kind : all_scene_kinds()) {
    names.push_back(name_of(kind));
    if (names.back() == name) {
      return kind;
    }
  }
  fail("scenes have no '{}'{}: an object is called by a colour ({}) and a shape ({})", name,
       io::did_you_mean(name, names), io::quoted_list({scene_colors.begin(), scene_colors.end()}),
       io::quoted_list({scene_shapes.begin(), scene_shapes.end()}));
}

bool is_on(const SceneObject& object, SceneSide side) {
  constexpr std::int64_t nearer = scene_side * 7 / 8;  // twice the distance of a middle from the side that it is on
  constexpr std::int64_t farther = 2 * scene_side - nearer;
  const std::int64_t x = object.box.left + object.box.right;
  const std::int64_t y = object.box.top + object.box.bottom;
  switch (side) {
    case SceneSide::left:
      return x < nearer;
    case SceneSide::right:
      return x > farther;
    case SceneSide::top:
      return y < nearer;
    case SceneSide::bottom:
      return y > farther;
  }
  return false;
}

std::optional<SceneRelation> relation_of(const SceneObject& a, const SceneObject& b) {
  // Twice the distances, so that middles need no rounding.
  const std::int64_t x = a.box.left + a.box.right - b.box.left - b.box.right;
  const std::int64_t y = a.box.top + a.box.bottom - b.box.top - b.box.bottom;
  if (std::max(std::abs(x), std::abs(y)) < scene_side / 4) {
    return std::nullopt;
  }
  if (std::abs(x) >= std::abs(y)) {
    return x < 0 ? SceneRelation::left_of : SceneRelation::right_of;
  }
  return y < 0 ? SceneRelation::above : SceneRelation::below;
}

}  // namespace vitrail::data
