#include "vitrail/data/scenes/source.h"

#include <tuple>

#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

constexpr std::string_view scheme = "scenes:";

// What each field of a source sets; `count` becomes 0 before, since it has no default.
SourceFields<SceneFolder> fields_of_source() {
  using Setter = SourceFields<SceneFolder>::mapped_type;
  const auto number = [](std::string key, std::int64_t SceneFolder::*member, std::int64_t low,
                         std::int64_t high) -> Setter {
    return [key = std::move(key), member, low, high](SceneFolder& what, const std::string& value) {
      what.*member = number_of_field(key, value, low, high);
    };
  };
  return {
      {"count", number("count", &SceneFolder::count, 1, 10'000'000)},
      {"start", number("start", &SceneFolder::first, 0, 1'000'000'000)},
      {"size", number("size", &SceneFolder::side, smallest_scene, largest_scene)},
      {"validation", number("validation", &SceneFolder::validation, 1, 10'000'000)},
      {"captions", number("captions", &SceneFolder::captions, 1, 100)},
      {"questions", number("questions", &SceneFolder::questions, 1, 100)},
      {"seed",
       [](SceneFolder& what, const std::string& value) {
         what.scenes.seed = static_cast<std::uint64_t>(number_of_field("seed", value, 0, INT64_MAX));
       }},
      {"objects",
       [](SceneFolder& what, const std::string& value) { read_object_range(value, "'objects'", what.scenes); }},
      {"holdout",
       [](SceneFolder& what, const std::string& value) { what.scenes.holdout = read_scene_kinds(value, '+'); }},
      {"held-out",
       [](SceneFolder& what, const std::string& value) { what.scenes.held_out = switch_of_field("held-out", value); }},
      {"overlap",
       [](SceneFolder& what, const std::string& value) { what.scenes.overlap = switch_of_field("overlap", value); }},
      {"paraphrase",
       [](SceneFolder& what, const std::string& value) { what.paraphrase = switch_of_field("paraphrase", value); }},
      {"background", [](SceneFolder& what, const std::string& value) { what.scenes.background = scene_color(value); }},
      {"style",
       [](SceneFolder& what, const std::string& value) {
         what.style = choice_of_field<SceneStyle>("style", value, scene_styles);
       }},
      {"task",
       [](SceneFolder& what, const std::string& value) {
         what.scenes.task = choice_of_field<SceneTask>("task", value, scene_tasks);
       }},
  };
}

void read_fields(std::string_view text, SceneFolder& what, std::initializer_list<std::string_view> idle) {
  const std::set<std::string> given = read_source_fields(text, fields_of_source(), what);
  check(given.contains("count"), "'count' is missing: how many scenes");
  for (const std::string_view field : idle) {
    check(!given.contains(std::string(field)), "'{}' has no effect here: leave it out", field);
  }
  if (what.style == SceneStyle::cells) {
    for (const char* name :
         {"objects", "holdout", "held-out", "background", "overlap", "task", "captions", "questions", "paraphrase"}) {
      check(!given.contains(name), "'{}' is not for scenes of cells", name);
    }
  }
  check(what.scenes.task != SceneTask::same_different || !given.contains("objects"),
        "scenes of 'task=same-different' have two objects: leave out 'objects'");
  check(what.scenes.task != SceneTask::same_different || !what.scenes.overlap,
        "the birds of 'task=same-different' are in opposite corners: leave out 'overlap'");
  check_scene_options(what.scenes);
}

}  // namespace

void read_object_range(std::string_view text, std::string_view name, SceneOptions& options) {
  std::tie(options.fewest_objects, options.most_objects) = range_of_field(name, text);
}

std::set<SceneKind> read_scene_kinds(std::string_view list, char separator) {
  std::set<SceneKind> kinds;
  for (const std::string& name : parts_between(list, separator)) {
    kinds.insert(scene_kind(name));
  }
  return kinds;
}

bool is_scene_source(const std::filesystem::path& source) { return source.string().starts_with(scheme); }

SceneFolder read_scene_source(const std::filesystem::path& source, std::initializer_list<std::string_view> idle) {
  SceneFolder what;
  try {
    read_fields(source.string().substr(scheme.size()), what, idle);
  } catch (const Error& error) {
    fail("{}: {}", source.string(), error.what());
  }
  return what;
}

io::Image scene_image(const SceneFolder& what, std::int64_t index) {
  return what.style == SceneStyle::cells ? draw_cells(sample_cells(what.scenes.seed, index), what.side).image
                                         : draw_scene(sample_scene(what.scenes, index), what.side).image;
}

std::vector<SceneInstance> scene_instances(const SceneFolder& what, std::int64_t index) {
  std::vector<SceneInstance> instances;
  if (what.style == SceneStyle::cells) {
    const CellScene scene = sample_cells(what.scenes.seed, index);
    instances.reserve(scene.cells.size());
    for (const Cell& cell : scene.cells) {
      const std::vector<std::uint8_t> mask = mask_of_cell(cell, what.side);
      instances.push_back(
          {static_cast<std::size_t>(cell.kind), box_of_object(mask, what.side, 1), area_of_object(mask, 1)});
    }
    return instances;
  }
  const Scene scene = sample_scene(what.scenes, index);
  const DrawnScene drawn = draw_scene(scene, what.side);
  instances.reserve(scene.objects.size());
  for (std::size_t i = 0; i < scene.objects.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i + 1);
    instances.push_back({static_cast<std::size_t>(scene.objects[i].kind.shape),
                         box_of_object(drawn.objects, what.side, number), area_of_object(drawn.objects, number)});
  }
  return instances;
}

std::vector<std::string> scene_categories(SceneStyle style) {
  return style == SceneStyle::cells ? std::vector<std::string>(cell_kinds.begin(), cell_kinds.end())
                                    : std::vector<std::string>(scene_shapes.begin(), scene_shapes.end());
}

}  // namespace vitrail::data
