#include "vitrail/data/scenes/source.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include <fmt/core.h>

#include "vitrail/data/scenes/cells.h"
#include "vitrail/data/scenes/draw.h"
#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

constexpr std::string_view scheme = "scenes:";

bool read_number(std::string_view text, std::int64_t& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

// The parts of a list, without the spaces around them.
std::vector<std::string> parts_between(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    std::string_view part = list.substr(0, list.find(separator));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
    part = part.substr(first, part.find_last_not_of(' ') + 1 - first);
    parts.emplace_back(part);
  }
  return parts;
}

template <class T, class Names>
T named_value(std::string_view key, std::string_view value, const Names& names) {
  const auto found = std::ranges::find(names, value);
  check(found != names.end(), "'{}' is {}, not '{}'", key, io::quoted_list({names.begin(), names.end()}), value);
  return static_cast<T>(found - names.begin());
}

bool switch_value(std::string_view key, std::string_view value) {
  check(value.empty() || value == "true" || value == "false", "'{}' is true or false, not '{}'", key, value);
  return value != "false";
}

std::int64_t number_value(std::string_view key, std::string_view value, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  check(read_number(value, number) && number >= low && number <= high, "'{}' is a whole number from {} to {}, not '{}'",
        key, low, high, value);
  return number;
}

// What each field of a source sets; `count` becomes 0 before, since it has no default.
std::map<std::string, std::function<void(SceneFolder&, const std::string&)>> fields_of_source() {
  using Setter = std::function<void(SceneFolder&, const std::string&)>;
  const auto number = [](std::string key, std::int64_t SceneFolder::*member, std::int64_t low,
                         std::int64_t high) -> Setter {
    return [key = std::move(key), member, low, high](SceneFolder& what, const std::string& value) {
      what.*member = number_value(key, value, low, high);
    };
  };
  return {
      {"count", number("count", &SceneFolder::count, 1, 10'000'000)},
      {"start", number("start", &SceneFolder::first, 0, 1'000'000'000)},
      {"size", number("size", &SceneFolder::side, smallest_scene, largest_scene)},
      {"validation", number("validation", &SceneFolder::validation, 1, 10'000'000)},
      {"captions", number("captions", &SceneFolder::captions, 1, 100)},
      {"seed",
       [](SceneFolder& what, const std::string& value) {
         what.scenes.seed = static_cast<std::uint64_t>(number_value("seed", value, 0, INT64_MAX));
       }},
      {"objects",
       [](SceneFolder& what, const std::string& value) { read_object_range(value, "'objects'", what.scenes); }},
      {"holdout",
       [](SceneFolder& what, const std::string& value) { what.scenes.holdout = read_scene_kinds(value, '+'); }},
      {"held-out",
       [](SceneFolder& what, const std::string& value) { what.scenes.held_out = switch_value("held-out", value); }},
      {"overlap",
       [](SceneFolder& what, const std::string& value) { what.scenes.overlap = switch_value("overlap", value); }},
      {"background", [](SceneFolder& what, const std::string& value) { what.scenes.background = scene_color(value); }},
      {"style", [](SceneFolder& what,
                   const std::string& value) { what.style = named_value<SceneStyle>("style", value, scene_styles); }},
      {"task", [](SceneFolder& what,
                  const std::string& value) { what.scenes.task = named_value<SceneTask>("task", value, scene_tasks); }},
  };
}

void read_fields(std::string_view text, SceneFolder& what) {
  const auto fields = fields_of_source();
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const auto& [name, set] : fields) {
    names.push_back(name);
  }
  std::set<std::string> given;
  for (const std::string& part : parts_between(text, ',')) {
    const std::string key = part.substr(0, part.find('='));
    const auto field = fields.find(key);
    check(field != fields.end(), "there is no field '{}'{}, only {}", key, io::did_you_mean(key, names),
          io::quoted_list(names, "and"));
    check(given.insert(key).second, "'{}' is there twice", key);
    field->second(what, key.size() < part.size() ? part.substr(key.size() + 1) : "");
  }
  check(given.contains("count"), "'count' is missing: how many scenes");
  if (what.style == SceneStyle::cells) {
    for (const char* name : {"objects", "holdout", "held-out", "background", "overlap", "task", "captions"}) {
      check(!given.contains(name), "'{}' is not for scenes of cells", name);
    }
  }
  check(what.scenes.task != SceneTask::same_different || !given.contains("objects"),
        "scenes of 'task=same-different' have two objects: leave out 'objects'");
  check_scene_options(what.scenes);
}

}  // namespace

void read_object_range(std::string_view text, std::string_view name, SceneOptions& options) {
  const std::size_t dash = text.find('-');
  const bool right = read_number(text.substr(0, dash), options.fewest_objects) &&
                     read_number(dash == std::string_view::npos ? text : text.substr(dash + 1), options.most_objects);
  check(right, "{} takes a number or a range of numbers, as in 2-6, not '{}'", name, text);
}

std::set<SceneKind> read_scene_kinds(std::string_view list, char separator) {
  std::set<SceneKind> kinds;
  for (const std::string& name : parts_between(list, separator)) {
    kinds.insert(scene_kind(name));
  }
  return kinds;
}

bool is_scene_source(const std::filesystem::path& source) { return source.string().starts_with(scheme); }

SceneFolder read_scene_source(const std::filesystem::path& source) {
  SceneFolder what;
  try {
    read_fields(source.string().substr(scheme.size()), what);
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
