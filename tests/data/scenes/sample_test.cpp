#include "vitrail/data/scenes/sample.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/data/scenes/draw.h"

namespace vitrail::data {
namespace {

using test::error_of;

constexpr std::int64_t many = 400;

bool is_behind(const SceneBackground& background, SceneColor color) {
  return background.sky == color || background.ground == color;
}

TEST(Scenes, DependOnSeedAndIndexAlone) {
  const SceneOptions options{.seed = 3};
  const Scene scene = sample_scene(options, 17);
  sample_scene(options, 18);
  EXPECT_EQ(sample_scene(options, 17), scene);
  EXPECT_NE(sample_scene(options, 18).objects, scene.objects);
  EXPECT_NE(sample_scene({.seed = 4}, 17).objects, scene.objects);
}

TEST(Scenes, AreOfObjectsApartInOtherColoursThanTheBackground) {
  std::map<std::size_t, int> counts;
  std::map<SceneKind, int> kinds;
  for (std::int64_t index = 0; index < many; ++index) {
    const Scene scene = sample_scene({}, index);
    ++counts[scene.objects.size()];
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      const SceneObject& object = scene.objects[i];
      ++kinds[object.kind];
      EXPECT_FALSE(is_behind(scene.background, object.kind.color));
      EXPECT_TRUE(object.box.left >= 4 && object.box.top >= 4 && object.box.right <= 252 && object.box.bottom <= 252);
      const bool small = object.size == SceneSize::small;
      if (object.kind.shape == SceneShape::bird) {
        EXPECT_FALSE(is_behind(scene.background, object.head) || is_behind(scene.background, object.beak));
        EXPECT_TRUE(object.head != object.kind.color && object.beak != object.kind.color && object.head != object.beak);
        EXPECT_GE(object.box.width(), 56);
      } else {
        EXPECT_TRUE(small ? object.box.width() >= 36 && object.box.width() <= 44
                          : object.box.width() >= 64 && object.box.width() <= 72);
      }
      for (std::size_t other = 0; other < i; ++other) {
        const SceneBox& a = object.box;
        const SceneBox& b = scene.objects[other].box;
        EXPECT_TRUE(a.right + 8 <= b.left || b.right + 8 <= a.left || a.bottom + 8 <= b.top || b.bottom + 8 <= a.top);
      }
    }
  }
  EXPECT_EQ(counts.size(), 5U);
  EXPECT_EQ(counts.begin()->first, 2U);
  EXPECT_EQ(kinds.size(), 32U);
  for (const auto& [kind, count] : kinds) {
    EXPECT_GT(count, 20) << name_of(kind);
  }
}

TEST(Scenes, HoldKindsOut) {
  SceneOptions options{.fewest_objects = 1, .most_objects = 3};
  options.holdout = {scene_kind("red triangle"), scene_kind("blue bird")};
  const auto is_held_out = [&](const SceneObject& object) { return options.holdout.contains(object.kind); };
  for (std::int64_t index = 0; index < many; ++index) {
    EXPECT_TRUE(std::ranges::none_of(sample_scene(options, index).objects, is_held_out));
  }
  options.held_out = true;
  for (std::int64_t index = 0; index < many; ++index) {
    const Scene scene = sample_scene(options, index);
    EXPECT_TRUE(std::ranges::any_of(scene.objects, is_held_out));
    for (const SceneObject& object : scene.objects) {
      EXPECT_FALSE(is_behind(scene.background, object.kind.color));
    }
  }
}

TEST(Scenes, MayHaveOneBackgroundForAll) {
  const SceneOptions options{.background = SceneColor::white};
  for (std::int64_t index = 0; index < many; ++index) {
    const Scene scene = sample_scene(options, index);
    EXPECT_EQ(scene.background.sky, SceneColor::white);
    EXPECT_FALSE(scene.background.ground.has_value());
    for (const SceneObject& object : scene.objects) {
      EXPECT_NE(object.kind.color, SceneColor::white);
    }
  }
}

TEST(Scenes, HaveTwoBirdsOfOneSpeciesInEverySecondSceneOfSeveral) {
  int several = 0;
  int alike = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    std::vector<SceneObject> birds;
    for (const SceneObject& object : sample_scene({}, index).objects) {
      if (object.kind.shape == SceneShape::bird) {
        birds.push_back(object);
        EXPECT_NE(object.head, object.kind.color);
        EXPECT_NE(object.beak, object.head);
      }
    }
    several += birds.size() > 1 ? 1 : 0;
    alike += birds.size() > 1 && same_species(birds[0], birds[1]) ? 1 : 0;
  }
  EXPECT_GT(several, 100);
  EXPECT_NEAR(alike, 0.5 * several, 0.1 * several);
}

TEST(Scenes, FindRoomForManyObjects) {
  for (std::int64_t index = 0; index < 30; ++index) {
    EXPECT_EQ(sample_scene({.fewest_objects = 8, .most_objects = 8}, index).objects.size(), 8U);
  }
}

std::int64_t area_in(const SceneBox& box) {
  return box.width() > 0 && box.height() > 0 ? box.width() * box.height() : 0;
}

std::int64_t area_in_both(const SceneBox& a, const SceneBox& b) {
  return area_in(
      {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)});
}

TEST(Scenes, MayOverlapButHideNothing) {
  int overlapping = 0;
  for (std::int64_t index = 0; index < many; ++index) {
    const Scene scene = sample_scene({.overlap = true}, index);
    bool overlaps = false;
    const DrawnScene drawn = draw_scene(scene);
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      const SceneObject& object = scene.objects[i];
      std::int64_t covered = 0;
      for (std::size_t j = 0; j < scene.objects.size(); ++j) {
        if (j != i) {
          const std::int64_t common = area_in_both(object.box, scene.objects[j].box);
          EXPECT_LE(3 * common, area_in(object.box));
          covered += common;
        }
      }
      EXPECT_LE(2 * covered, area_in(object.box));
      overlaps = overlaps || covered > 0;
      const auto number = static_cast<std::int64_t>(i + 1);
      EXPECT_GT(area_of_object(drawn.objects, number), object.kind.shape == SceneShape::bird ? 60 : 15);
      if (object.kind.shape == SceneShape::bird) {
        Scene alone = scene;
        alone.objects = {object};
        EXPECT_EQ(area_of_object(drawn.heads, number), area_of_object(draw_scene(alone).heads, 1)) << index;
      }
    }
    overlapping += overlaps ? 1 : 0;
  }
  EXPECT_GT(overlapping, many / 3);
}

TEST(Scenes, OfTwoBirdsAreOfOneSpeciesOrNot) {
  const SceneOptions options{.holdout = {scene_kind("red bird")}, .task = SceneTask::same_different};
  std::map<std::pair<bool, bool>, int> differences;  // of the body, of the head
  int beaks = 0;
  for (std::int64_t index = 0; index < many; ++index) {
    const Scene scene = sample_scene(options, index);
    ASSERT_EQ(scene.objects.size(), 2U);
    const SceneObject& a = scene.objects[0];
    const SceneObject& b = scene.objects[1];
    EXPECT_EQ(scene_class(options.task, scene), index % 2 == 0 ? "same" : "different");
    ++differences[{a.kind.color != b.kind.color, a.head != b.head}];
    beaks += a.beak == b.beak ? 1 : 0;
    for (const SceneObject& bird : scene.objects) {
      EXPECT_EQ(bird.kind.shape, SceneShape::bird);
      EXPECT_NE(bird.kind.color, SceneColor::red);
      EXPECT_TRUE(bird.head != bird.kind.color && bird.beak != bird.head && bird.beak != bird.kind.color);
      EXPECT_FALSE(is_behind(scene.background, bird.kind.color) || is_behind(scene.background, bird.head));
    }
    // Each lies in its corner, and these are opposite.
    const auto is_low = [](std::int64_t low, std::int64_t high) { return low + high < scene_side; };
    EXPECT_NE(is_low(a.box.left, a.box.right), is_low(b.box.left, b.box.right));
    EXPECT_NE(is_low(a.box.top, a.box.bottom), is_low(b.box.top, b.box.bottom));
    EXPECT_TRUE((a.box.right < 128 || a.box.left > 128) && (a.box.bottom < 128 || a.box.top > 128));
  }
  EXPECT_EQ(differences.size(), 4U);
  EXPECT_EQ((differences[{false, false}]), many / 2);
  for (const auto& [which, count] : differences) {
    EXPECT_GT(count, many / 10);
  }
  EXPECT_LT(beaks, many / 2);
  EXPECT_EQ(scene_classes(options), (std::vector<std::string>{"different", "same"}));
  EXPECT_EQ(scene_classes({.task = SceneTask::count}), (std::vector<std::string>{"2", "3", "4", "5", "6"}));
}

TEST(Scenes, HaveRelationsByTheirMiddles) {
  const auto at = [](std::int64_t x, std::int64_t y) {
    SceneObject object;
    object.box = {x - 10, y - 10, x + 10, y + 10};
    return object;
  };
  EXPECT_EQ(relation_of(at(50, 100), at(120, 60)), SceneRelation::left_of);
  EXPECT_EQ(relation_of(at(120, 60), at(50, 100)), SceneRelation::right_of);
  EXPECT_EQ(relation_of(at(120, 60), at(110, 100)), SceneRelation::above);
  EXPECT_EQ(relation_of(at(110, 100), at(120, 60)), SceneRelation::below);
  EXPECT_EQ(relation_of(at(110, 100), at(130, 90)), std::nullopt);
}

TEST(Scenes, SayWhatTheyCannotBe) {
  EXPECT_EQ(error_of([] { scene_kind("red triangel"); }),
            "scenes have no 'red triangel' (did you mean 'red triangle' or 'green triangle'?): an object is called by "
            "a colour ('red', "
            "'green', 'blue', 'yellow', 'purple', 'orange', 'white' or 'black') and a shape ('circle', 'square', "
            "'triangle' or 'bird')");
  EXPECT_EQ(error_of([] { sample_scene({.fewest_objects = 3, .most_objects = 2}, 0); }),
            "a scene has 1 to 12 objects, not 3 to 2");
  EXPECT_EQ(error_of([] { sample_scene({.held_out = true}, 0); }), "nothing is held out that a scene could be made of");
  EXPECT_EQ(error_of([] { sample_scene({}, -1); }), "scenes are counted from 0, not -1");
  EXPECT_EQ(error_of([] { scene_color("rad"); }),
            "scenes have no colour 'rad' (did you mean 'red'?): there are 'red', 'green', 'blue', 'yellow', 'purple', "
            "'orange', 'white' and 'black'");
  EXPECT_EQ(error_of([] {
              sample_scene({.holdout = {scene_kind("red bird")}, .held_out = true, .background = SceneColor::red}, 0);
            }),
            "an object in the colour of the background cannot be seen: hold out others");
  const std::vector<SceneKind> all = all_scene_kinds();
  EXPECT_EQ(error_of([&] {
              sample_scene({.holdout = {all.begin(), all.end() - 5}}, 0);
            }),
            "27 of the 32 kinds of objects are held out: those left need three colours at least");
  SceneOptions birds{.task = SceneTask::same_different};
  birds.holdout = {scene_kind("red circle")};
  birds.held_out = true;
  EXPECT_EQ(error_of([&] { sample_scene(birds, 0); }), "no bird is held out that a scene of two could be made of");
  for (const char* name : {"red bird", "blue bird", "green bird", "white bird", "black bird"}) {
    birds.holdout.insert(scene_kind(name));
  }
  EXPECT_EQ(error_of([&] { sample_scene(birds, 0); }),
            "5 of the 8 kinds of birds are held out: those left need four colours");
}

}  // namespace
}  // namespace vitrail::data
