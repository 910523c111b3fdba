/// \file
/// Scenes of a small world: coloured shapes and birds, of which everything is known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::data {

enum class SceneColor { red, green, blue, yellow, purple, orange, white, black };
enum class SceneShape { circle, square, triangle, bird };
enum class SceneSize { small, large };
enum class ScenePart { whole, head, beak };  ///< of an object; a head and a beak of birds alone

inline constexpr std::array<std::string_view, 8> scene_colors = {"red",    "green",  "blue",  "yellow",
                                                                 "purple", "orange", "white", "black"};
inline constexpr std::array<std::string_view, 4> scene_shapes = {"circle", "square", "triangle", "bird"};
inline constexpr std::array<std::string_view, 2> scene_sizes = {"small", "large"};

inline std::string_view name_of(SceneColor color) { return scene_colors[static_cast<std::size_t>(color)]; }
inline std::string_view name_of(SceneShape shape) { return scene_shapes[static_cast<std::size_t>(shape)]; }
inline std::string_view name_of(SceneSize size) { return scene_sizes[static_cast<std::size_t>(size)]; }

/// What an object is called: its colour and its shape.
struct SceneKind {
  SceneColor color = SceneColor::red;
  SceneShape shape = SceneShape::circle;
  bool operator==(const SceneKind&) const = default;
  bool operator<(const SceneKind& other) const {
    return color != other.color ? color < other.color : shape < other.shape;
  }
};
std::string name_of(const SceneKind& kind);  ///< "red triangle"
/// The kind of that name. Throws Error if it is none.
SceneKind scene_kind(std::string_view name);
/// The colour of that name. Throws Error if it is none.
SceneColor scene_color(std::string_view name);
/// All kinds, by colour, then by shape.
std::vector<SceneKind> all_scene_kinds();

/// A scene is this many units wide and high, whatever the size of the image that is drawn of it: quarters of a pixel of
/// an image of 64 × 64.
constexpr std::int64_t scene_side = 256;

/// A rectangle in units of a scene, or in pixels: [left, right) × [top, bottom).
struct SceneBox {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;

  std::int64_t width() const { return right - left; }
  std::int64_t height() const { return bottom - top; }
  bool operator==(const SceneBox&) const = default;
};

struct SceneObject {
  SceneKind kind;  ///< of a bird, with the colour of its body
  SceneSize size = SceneSize::small;
  SceneBox box;                       ///< in units
  SceneColor head = SceneColor::red;  ///< of a bird
  SceneColor beak = SceneColor::red;  ///< of a bird
  bool faces_left = false;            ///< of a bird
  bool operator==(const SceneObject&) const = default;
};

/// Whether two birds have the same body and head, which are what tells species apart.
inline bool same_species(const SceneObject& a, const SceneObject& b) {
  return a.kind == b.kind && a.kind.shape == SceneShape::bird && a.head == b.head;
}

struct SceneBackground {
  SceneColor sky = SceneColor::blue;                ///< of the whole background, if there is no ground
  std::optional<SceneColor> ground = std::nullopt;  ///< below the horizon
  std::int64_t horizon = scene_side;                ///< units from the top
  std::int64_t slope_x = 0;                         ///< how much brighter the right side is than the left one, of 255
  std::int64_t slope_y = 0;                         ///< how much brighter the bottom is than the top
  bool operator==(const SceneBackground&) const = default;
};

struct Scene {
  std::uint64_t seed = 0;
  std::int64_t index = 0;
  SceneBackground background;
  std::vector<SceneObject> objects = {};
  bool operator==(const Scene&) const = default;
};

/// A side of the scene that an object is on.
enum class SceneSide { left, right, top, bottom };
inline constexpr std::array<std::string_view, 4> scene_sides = {"on the left", "on the right", "at the top",
                                                                "at the bottom"};
inline std::string_view name_of(SceneSide side) { return scene_sides[static_cast<std::size_t>(side)]; }
/// Whether the middle of an object is nearer to that side than 7/16 of the scene.
bool is_on(const SceneObject& object, SceneSide side);

/// Numbers in words, from 0.
inline constexpr std::array<std::string_view, 13> scene_numbers = {
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};

/// Where one object is, seen from another.
enum class SceneRelation { left_of, right_of, above, below };
inline constexpr std::array<std::string_view, 4> scene_relations = {"left of", "right of", "above", "below"};
inline std::string_view name_of(SceneRelation r) { return scene_relations[static_cast<std::size_t>(r)]; }
/// Where `a` is, seen from `b`, by their middles: along the axis on which these are further apart, if that is at least
/// an eighth of the scene.
std::optional<SceneRelation> relation_of(const SceneObject& a, const SceneObject& b);

}  // namespace vitrail::data
