#include "vitrail/data/scenes/sample.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

constexpr std::int64_t margin = 4;  // units between an object and the border of the scene
constexpr std::int64_t gap = 8;     // units between two objects
constexpr std::int64_t steepest = 24;
constexpr std::int64_t tries_an_object = 60;
constexpr std::int64_t layouts_of_sizes = 20;
constexpr std::int64_t sizes_tried = 40;

bool one_in(Draws& draws, std::int64_t count) { return draws.integer(0, count) == 0; }

template <class T>
const T& one_of(Draws& draws, const std::vector<T>& items) {
  return items[static_cast<std::size_t>(draws.integer(0, std::ssize(items)))];
}

// The colours without some of them.
std::vector<SceneColor> colors_but(const std::vector<SceneColor>& without) {
  std::vector<SceneColor> colors;
  for (std::size_t i = 0; i < scene_colors.size(); ++i) {
    const auto color = static_cast<SceneColor>(i);
    if (std::ranges::find(without, color) == without.end()) {
      colors.push_back(color);
    }
  }
  return colors;
}

std::vector<SceneColor> colors_of(const SceneBackground& background) {
  std::vector<SceneColor> colors = {background.sky};
  if (background.ground) {
    colors.push_back(*background.ground);
  }
  return colors;
}

// A background in none of the colours `without`, or in the one that the options ask for.
SceneBackground sample_background(Draws& draws, const SceneOptions& options, std::vector<SceneColor> without) {
  SceneBackground background;
  if (options.background) {
    background.sky = *options.background;
  } else {
    background.sky = one_of(draws, colors_but(without));
  }
  if (!options.background && one_in(draws, 2)) {
    without.push_back(background.sky);
    background.ground = one_of(draws, colors_but(without));
    background.horizon = draws.integer(scene_side * 5 / 16, scene_side * 11 / 16);
  }
  background.slope_x = draws.integer(-steepest, steepest + 1);
  background.slope_y = draws.integer(-steepest, steepest + 1);
  return background;
}

// The width and the height of an object. A bird is wider, so that its head covers a patch of 4 pixels of 64.
std::pair<std::int64_t, std::int64_t> sample_extent(Draws& draws, SceneShape shape, SceneSize size) {
  const bool small = size == SceneSize::small;
  if (shape == SceneShape::bird) {
    const std::int64_t width = small ? draws.integer(56, 61) : draws.integer(76, 85);
    return {width, width * 3 / 4};
  }
  const std::int64_t width = small ? draws.integer(36, 45) : draws.integer(64, 73);
  return {width, shape == SceneShape::triangle ? width * 7 / 8 : width};
}

bool apart(const SceneBox& a, const SceneBox& b) {
  return a.right + gap <= b.left || b.right + gap <= a.left || a.bottom + gap <= b.top || b.bottom + gap <= a.top;
}

std::int64_t area_of(const SceneBox& box) {
  return std::max<std::int64_t>(0, box.width()) * std::max<std::int64_t>(0, box.height());
}

std::int64_t common_area(const SceneBox& a, const SceneBox& b) {
  return area_of(
      {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)});
}

// Where the head and the beak of a bird are, as they are drawn; empty of other shapes.
SceneBox head_box(const SceneObject& object) {
  const SceneBox& box = object.box;
  if (object.kind.shape != SceneShape::bird) {
    return {};
  }
  const std::int64_t width = (box.width() * 32 + 55) / 56;
  const std::int64_t bottom = box.top + (box.height() * 25 + 41) / 42;
  return object.faces_left ? SceneBox{box.left, box.top, box.left + width, bottom}
                           : SceneBox{box.right - width, box.top, box.right, bottom};
}

// Whether enough can be seen of an object and of those that have a place already.
bool all_visible(const SceneObject& object, const std::vector<const SceneObject*>& placed) {
  const auto covered = [&](const SceneObject& one) {
    std::int64_t sum = &one == &object ? 0 : common_area(one.box, object.box);
    for (const SceneObject* other : placed) {
      sum += other == &one ? 0 : common_area(one.box, other->box);
    }
    return sum;
  };
  const auto can_be = [&](const SceneObject* other) {
    const std::int64_t common = common_area(object.box, other->box);
    return 3 * common <= std::min(area_of(object.box), area_of(other->box)) &&
           common_area(head_box(object), other->box) == 0 && common_area(object.box, head_box(*other)) == 0 &&
           (common == 0 || 2 * covered(*other) <= area_of(other->box));
  };
  return std::ranges::all_of(placed, can_be) && 2 * covered(object) <= area_of(object.box);
}

// Gives each object a place of its own, the large ones first. Returns whether it has found them.
bool place_objects(Draws& draws, std::vector<SceneObject>& objects, bool overlap) {
  std::vector<SceneObject*> order;
  order.reserve(objects.size());
  for (SceneObject& object : objects) {
    order.push_back(&object);
  }
  std::ranges::stable_sort(order, [](const SceneObject* a, const SceneObject* b) { return a->size > b->size; });
  std::vector<const SceneObject*> placed;
  for (SceneObject* object : order) {
    const std::int64_t width = object->box.width();
    const std::int64_t height = object->box.height();
    bool found = false;
    for (std::int64_t i = 0; i < tries_an_object && !found; ++i) {
      const std::int64_t left = draws.integer(margin, scene_side - margin - width + 1);
      const std::int64_t top = draws.integer(margin, scene_side - margin - height + 1);
      object->box = {left, top, left + width, top + height};
      found = overlap ? all_visible(*object, placed) : std::ranges::all_of(placed, [&](const SceneObject* other) {
        return apart(other->box, object->box);
      });
    }
    if (!found) {
      return false;
    }
    placed.push_back(object);
  }
  return true;
}

void sample_sizes(Draws& draws, std::vector<SceneObject>& objects) {
  for (SceneObject& object : objects) {
    object.size = one_in(draws, 2) ? SceneSize::large : SceneSize::small;
    const auto [width, height] = sample_extent(draws, object.kind.shape, object.size);
    object.box = {0, 0, width, height};
  }
}

// Gives a bird the colours of its head and its beak, unless it has a head already, and a side that it faces.
void sample_bird(Draws& draws, SceneObject& bird, const SceneBackground& background, std::optional<SceneColor> head) {
  std::vector<SceneColor> used = colors_of(background);
  used.push_back(bird.kind.color);
  bird.head = head ? *head : one_of(draws, colors_but(used));
  used.push_back(bird.head);
  bird.beak = one_of(draws, colors_but(used));
  bird.faces_left = one_in(draws, 2);
}

// The kinds that are not held out, in colours other than those of the background.
std::vector<SceneKind> allowed_kinds(const SceneOptions& options, const SceneBackground& background) {
  const std::vector<SceneColor> behind = colors_of(background);
  std::vector<SceneKind> kinds = all_scene_kinds();
  std::erase_if(kinds, [&](const SceneKind& kind) {
    return options.holdout.contains(kind) || std::ranges::find(behind, kind.color) != behind.end();
  });
  return kinds;
}

// In every second scene with several birds, the second one is of the first one's species: drawn by lot alone, two would
// hardly ever be.
void pair_birds(Scene& scene) {
  Draws draws(Philox(mix(scene.seed, hash("birds of a feather")), static_cast<std::uint64_t>(scene.index)));
  std::vector<SceneObject*> birds;
  for (SceneObject& object : scene.objects) {
    if (object.kind.shape == SceneShape::bird) {
      birds.push_back(&object);
    }
  }
  if (birds.size() > 1 && one_in(draws, 2)) {
    birds[1]->kind = birds[0]->kind;
    birds[1]->head = birds[0]->head;
    birds[1]->beak = birds[0]->beak;
  }
}

std::vector<SceneKind> birds_among(std::vector<SceneKind> kinds) {
  std::erase_if(kinds, [](const SceneKind& kind) { return kind.shape != SceneShape::bird; });
  return kinds;
}

// A scene of SceneTask::same_different.
Scene sample_two_birds(Draws& draws, const SceneOptions& options, std::int64_t index) {
  Scene scene{.seed = options.seed, .index = index, .background = {}, .objects = std::vector<SceneObject>(2)};
  SceneObject& first = scene.objects[0];
  SceneObject& second = scene.objects[1];
  std::vector<SceneColor> fixed;
  if (options.held_out) {
    first.kind = one_of(draws, birds_among({options.holdout.begin(), options.holdout.end()}));
    fixed.push_back(first.kind.color);
  }
  scene.background = sample_background(draws, options, fixed);
  const std::vector<SceneKind> allowed = birds_among(allowed_kinds(options, scene.background));
  if (!options.held_out) {
    first.kind = one_of(draws, allowed);
  }
  sample_bird(draws, first, scene.background, std::nullopt);
  second.kind = first.kind;
  std::optional<SceneColor> head = first.head;
  if (index % 2 != 0) {
    const std::int64_t differs = draws.integer(0, 3);  // the head, the body, or both
    std::vector<SceneKind> others = allowed;
    std::erase_if(others, [&](const SceneKind& kind) { return kind == first.kind || kind.color == first.head; });
    if (differs > 0 && !others.empty()) {
      second.kind = one_of(draws, others);
    }
    if (differs != 1 || others.empty()) {
      std::vector<SceneColor> used = colors_of(scene.background);
      used.insert(used.end(), {first.head, second.kind.color});
      head = one_of(draws, colors_but(used));
    }
  }
  sample_bird(draws, second, scene.background, head);
  sample_sizes(draws, scene.objects);
  constexpr std::int64_t middle = scene_side / 2;
  bool left = one_in(draws, 2);
  bool top = one_in(draws, 2);
  for (SceneObject& bird : scene.objects) {
    const std::int64_t width = bird.box.width();
    const std::int64_t height = bird.box.height();
    const std::int64_t x = draws.integer(margin, middle - margin - width + 1) + (left ? 0 : middle);
    const std::int64_t y = draws.integer(margin, middle - margin - height + 1) + (top ? 0 : middle);
    bird.box = {x, y, x + width, y + height};
    left = !left;
    top = !top;
  }
  return scene;
}

}  // namespace

void check_scene_options(const SceneOptions& options) {
  check(options.fewest_objects >= 1 && options.fewest_objects <= options.most_objects &&
            options.most_objects <= most_scene_objects,
        "a scene has 1 to {} objects, not {} to {}", most_scene_objects, options.fewest_objects, options.most_objects);
  check(!options.held_out || !options.holdout.empty(), "nothing is held out that a scene could be made of");
  const auto on_itself = [&](const SceneKind& kind) { return kind.color == options.background; };
  check(!options.held_out || std::ranges::none_of(options.holdout, on_itself),
        "an object in the colour of the background cannot be seen: hold out others");
  // A background takes away two of the colours.
  std::set<SceneColor> left;
  for (const SceneKind& kind : all_scene_kinds()) {
    if (!options.holdout.contains(kind)) {
      left.insert(kind.color);
    }
  }
  if (options.task == SceneTask::same_different) {
    const auto held_out = birds_among({options.holdout.begin(), options.holdout.end()}).size();
    check(held_out + 4 <= scene_colors.size(), "{} of the {} kinds of birds are held out: those left need four colours",
          held_out, scene_colors.size());
    check(!options.held_out || held_out > 0, "no bird is held out that a scene of two could be made of");
  }
  check(left.size() > 2, "{} of the {} kinds of objects are held out: those left need three colours at least",
        options.holdout.size(), all_scene_kinds().size());
}

Scene sample_scene(const SceneOptions& options, std::int64_t index) {
  check_scene_options(options);
  check(index >= 0, "scenes are counted from 0, not {}", index);
  Draws draws(Philox(mix(options.seed, hash("scene")), static_cast<std::uint64_t>(index)));
  if (options.task == SceneTask::same_different) {
    return sample_two_birds(draws, options, index);
  }
  Scene scene{.seed = options.seed, .index = index, .background = {}, .objects = {}};
  const std::int64_t count = draws.integer(options.fewest_objects, options.most_objects + 1);
  std::vector<SceneKind> kinds;
  std::vector<SceneColor> fixed;
  if (options.held_out) {
    kinds.push_back(one_of(draws, std::vector(options.holdout.begin(), options.holdout.end())));
    fixed.push_back(kinds[0].color);
  }
  scene.background = sample_background(draws, options, fixed);
  const std::vector<SceneKind> allowed = allowed_kinds(options, scene.background);
  while (std::ssize(kinds) < count) {
    kinds.push_back(one_of(draws, allowed));
  }
  for (const SceneKind& kind : kinds) {
    SceneObject& object = scene.objects.emplace_back();
    object.kind = kind;
    if (kind.shape == SceneShape::bird) {
      sample_bird(draws, object, scene.background, std::nullopt);
    }
  }
  pair_birds(scene);
  for (std::int64_t i = 0; i < sizes_tried; ++i) {
    sample_sizes(draws, scene.objects);
    for (std::int64_t layout = 0; layout < layouts_of_sizes; ++layout) {
      if (place_objects(draws, scene.objects, options.overlap)) {
        return scene;
      }
    }
  }
  fail("{} objects find no room in scene {} of seed {}: ask for fewer", count, index, options.seed);
}

std::string scene_class(SceneTask task, const Scene& scene) {
  if (task == SceneTask::same_different) {
    return same_species(scene.objects.at(0), scene.objects.at(1)) ? "same" : "different";
  }
  return std::to_string(scene.objects.size());
}

std::vector<std::string> scene_classes(const SceneOptions& options) {
  if (options.task == SceneTask::same_different) {
    return {"different", "same"};
  }
  std::vector<std::string> classes;
  for (std::int64_t count = options.fewest_objects; count <= options.most_objects; ++count) {
    classes.push_back(std::to_string(count));
  }
  return classes;
}

}  // namespace vitrail::data
