#include "vitrail/data/scenes/read.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

template <class T, class All>
T named(io::Fields& fields, std::string_view key, const All& all) {
  const auto name = fields.get<std::string>(key);
  fields.choice(key, "", {all.begin(), all.end()});  // throws if it is none of them
  return static_cast<T>(std::ranges::find(all, name) - all.begin());
}

SceneColor color_in(io::Fields& fields, std::string_view key) { return named<SceneColor>(fields, key, scene_colors); }

SceneObject object_in_file(const nlohmann::json& json, const std::string& source) {
  io::Fields fields(json, source);
  SceneObject object;
  object.kind = {color_in(fields, "color"), named<SceneShape>(fields, "shape", scene_shapes)};
  object.size = named<SceneSize>(fields, "size", scene_sizes);
  if (object.kind.shape == SceneShape::bird) {
    object.head = color_in(fields, "head");
    object.beak = color_in(fields, "beak");
    object.faces_left = fields.get<std::string>("faces") == "left";
  }
  check(
      fields.kind("units") != io::Kind::absent,
      "{}: there is no 'units', which earlier versions did not write: the same `vitrail scenes` draws the same scenes "
      "with them",
      source);
  const auto box = fields.get<std::vector<std::int64_t>>("units", {0, static_cast<double>(scene_side)});
  check(box.size() == 4, "{}: 'units' has {} numbers, not 4 (left, top, width, height)", source, box.size());
  object.box = {box[0], box[1], box[0] + box[2], box[1] + box[3]};
  return object;
}

}  // namespace

std::map<std::int64_t, Scene> read_scenes(const std::filesystem::path& file) {
  const nlohmann::json json = io::read_json(file);
  io::Fields fields(json, file.string());
  io::Fields info = fields.object("info");
  const auto seed = static_cast<std::uint64_t>(info.get<std::int64_t>("seed"));
  check(info.get<std::string>("style", "shapes") == "shapes", "{}: these are scenes of cells, not of shapes",
        file.string());
  check(fields.kind("scenes") == io::Kind::list, "{}: there is no list 'scenes', as `vitrail scenes` writes it",
        file.string());
  std::map<std::int64_t, Scene> scenes;
  std::size_t number = 0;
  for (const nlohmann::json& item : json["scenes"]) {
    io::Fields scene(item, fmt::format("{}: 'scenes' {}", file.string(), number++));
    const auto index = scene.get<std::int64_t>("index", io::at_least(0));
    const auto [place, is_new] =
        scenes.emplace(index, Scene{.seed = seed, .index = index, .background = {}, .objects = {}});
    check(is_new, "{}: the index {} is there twice", scene.source(), index);
    io::Fields background = scene.object("background");
    place->second.background.sky = color_in(background, "sky");
    if (background.kind("ground") != io::Kind::absent) {
      place->second.background.ground = color_in(background, "ground");
    }
    check(scene.kind("objects") == io::Kind::list, "{}: there is no list 'objects'", scene.source());
    for (const nlohmann::json& object : item["objects"]) {
      const std::size_t at = place->second.objects.size();
      place->second.objects.push_back(object_in_file(object, fmt::format("{}: 'objects' {}", scene.source(), at)));
    }
  }
  return scenes;
}

}  // namespace vitrail::data
