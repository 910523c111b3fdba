/// \file
/// Scenes that are drawn when they are asked for, with nothing written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/scenes/write.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

/// "2-6", or "3" for 3 to 3, as the numbers of objects. Throws Error, in which `name` stands for what was read.
void read_object_range(std::string_view text, std::string_view name, SceneOptions& options);
/// The kinds of a list such as "red triangle, blue bird". Throws Error for one that there is not.
std::set<SceneKind> read_scene_kinds(std::string_view list, char separator = ',');

/// Whether a source of data names scenes: "scenes:seed=0,count=8000".
bool is_scene_source(const std::filesystem::path& source);

/// Reads the fields behind "scenes:", which have the names and the meanings of the flags of `vitrail scenes`: count
/// (which is needed), seed, start, size, objects (2-6), holdout (kinds joined by +), held-out, background, overlap,
/// style, task, validation, captions, questions; those of switches stand alone or have true or false. Throws Error,
/// which names the source, for a field that there is not, that is there twice or that cannot be, and for one of `idle`,
/// those that what is asked of the scenes does not depend on.
SceneFolder read_scene_source(const std::filesystem::path& source, std::initializer_list<std::string_view> idle = {});

/// The image of scene `index`, as write_scenes() writes it.
io::Image scene_image(const SceneFolder& what, std::int64_t index);

/// What instances.json says of an object.
struct SceneInstance {
  std::size_t category = 0;  ///< among scene_categories()
  SceneBox box;              ///< in pixels
  std::int64_t area = 0;     ///< in pixels
};
std::vector<SceneInstance> scene_instances(const SceneFolder& what, std::int64_t index);
/// The names of the categories of instances.json, whose ids count from 1.
std::vector<std::string> scene_categories(SceneStyle style);

}  // namespace vitrail::data
