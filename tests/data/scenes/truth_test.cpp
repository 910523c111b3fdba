#include "vitrail/data/scenes/truth.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/sample.h"

namespace vitrail::data {
namespace {

using ::testing::AllOf;
using ::testing::Field;

constexpr std::int64_t judged_scenes = 500;

SceneObject object_in(const std::string& kind, SceneSize size, std::int64_t x, std::int64_t y) {
  SceneObject object;
  object.kind = scene_kind(kind);
  object.size = size;
  object.box = {x - 20, y - 20, x + 20, y + 20};
  return object;
}

// A red circle above two small birds, and one more red circle beside them.
Scene some_scene() {
  Scene scene;
  scene.objects = {
      object_in("red circle", SceneSize::large, 120, 40), object_in("blue bird", SceneSize::small, 60, 150),
      object_in("green bird", SceneSize::small, 130, 160), object_in("red circle", SceneSize::small, 220, 150)};
  return scene;
}

TEST(CaptionTruth, HoldsForEachCaptionOfAScene) {
  for (std::int64_t index = 0; index < judged_scenes; ++index) {
    const Scene scene = sample_scene({}, index);
    for (const SceneCaption& said : scene_captions(scene)) {
      const std::string& caption = said.text;
      const SceneVerdict verdict = caption_truth(caption, scene);
      EXPECT_TRUE(verdict.truth == SceneTruth::holds && verdict.reason.empty()) << caption << ": " << verdict.reason;
    }
  }
}

TEST(CaptionTruth, MostlyFailsForCaptionsOfOtherScenes) {
  int failed = 0;
  int all = 0;
  for (std::int64_t index = 0; index < judged_scenes; ++index) {
    for (const SceneCaption& said : scene_captions(sample_scene({}, index + 1))) {
      const std::string& caption = said.text;
      const SceneVerdict verdict = caption_truth(caption, sample_scene({}, index));
      ASSERT_NE(verdict.truth, SceneTruth::not_understood) << caption << ": " << verdict.reason;
      failed += verdict.truth == SceneTruth::fails ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(failed, all * 9 / 10);
}

// A kind that the scene does not have, in place of one that the caption names.
TEST(CaptionTruth, FailsForAnotherColor) {
  int changed = 0;
  for (std::int64_t index = 0; index < judged_scenes; ++index) {
    const Scene scene = sample_scene({}, index);
    for (const SceneCaption& said : scene_captions(scene)) {
      const std::string& caption = said.text;
      for (const SceneKind& kind : all_scene_kinds()) {
        const std::size_t at = caption.find(name_of(kind));
        if (at == std::string::npos) {
          continue;
        }
        for (const std::string_view color : scene_colors) {
          const SceneKind other = {scene_color(color), kind.shape};
          if (std::ranges::none_of(scene.objects, [&](const SceneObject& one) { return one.kind == other; })) {
            std::string lie = caption;
            lie.replace(at, name_of(kind).size(), name_of(other));
            EXPECT_EQ(caption_truth(lie, scene).truth, SceneTruth::fails) << lie;
            ++changed;
          }
        }
      }
    }
  }
  EXPECT_GT(changed, 10'000);
}

// The opposite relation holds only if another pair fits the words, which the test makes sure of by taking scenes in
// which each object is of another kind.
TEST(CaptionTruth, FailsForTheOppositeRelationAndForAnotherNumber) {
  int changed = 0;
  int counted = 0;
  for (std::int64_t index = 0; index < judged_scenes; ++index) {
    const Scene scene = sample_scene({}, index);
    const bool differ = std::ranges::all_of(scene.objects, [&](const SceneObject& a) {
      return std::ranges::count_if(scene.objects, [&](const SceneObject& b) { return a.kind == b.kind; }) == 1;
    });
    for (const SceneCaption& said : scene_captions(scene)) {
      const std::string& caption = said.text;
      for (std::size_t i = 0; differ && i < scene_relations.size(); ++i) {
        const std::size_t at = caption.find(scene_relations[i]);
        if (at != std::string::npos) {
          std::string lie = caption;
          lie.replace(at, scene_relations[i].size(), scene_relations[i ^ 1U]);
          EXPECT_EQ(caption_truth(lie, scene).truth, SceneTruth::fails) << lie;
          ++changed;
        }
      }
      const auto number =
          std::ranges::find_if(scene_numbers, [&](std::string_view word) { return caption.starts_with(word); });
      if (number != scene_numbers.end()) {
        for (const std::string_view other : {"two", "three", "four", "no"}) {
          if (other != *number) {
            std::string lie = caption;
            lie.replace(0, number->size(), other);
            EXPECT_EQ(caption_truth(lie, scene).truth, SceneTruth::fails) << lie;
            ++counted;
          }
        }
      }
    }
  }
  EXPECT_GT(changed, 200);
  EXPECT_GT(counted, 200);
}

TEST(CaptionTruth, SaysWhy) {
  const Scene scene = some_scene();
  const auto verdict = [&](std::string_view caption) { return caption_truth(caption, scene); };
  const auto holds = Field(&SceneVerdict::truth, SceneTruth::holds);
  const auto fails = [](const std::string& reason) {
    return AllOf(Field(&SceneVerdict::truth, SceneTruth::fails), Field(&SceneVerdict::reason, reason));
  };
  const auto unclear = [](const std::string& reason) {
    return AllOf(Field(&SceneVerdict::truth, SceneTruth::not_understood), Field(&SceneVerdict::reason, reason));
  };
  EXPECT_THAT(verdict("A large red circle above two small birds."), holds);
  EXPECT_THAT(verdict("a bird"), holds);
  EXPECT_THAT(verdict("two birds left of a small red circle"), holds);
  EXPECT_THAT(verdict("a red circle, a blue bird and a red circle"), holds);
  EXPECT_THAT(verdict("one blue bird on the left"), holds);
  EXPECT_THAT(verdict("no squares"), holds);
  EXPECT_THAT(verdict("a red circle at the top"), holds);

  EXPECT_THAT(verdict("a small red square"), fails("there is no small red square"));
  EXPECT_THAT(verdict("three birds"), fails("there are 2 birds, not 3"));
  EXPECT_THAT(verdict("two red circles at the top"), fails("two red circles are not at the top"));
  EXPECT_THAT(verdict("a blue bird on the right"), fails("a blue bird is not on the right"));
  EXPECT_THAT(verdict("a blue bird right of a green bird"), fails("a blue bird is not right of a green bird"));
  EXPECT_THAT(verdict("a blue bird and a blue bird"), fails("there are fewer objects of a kind than are named"));
  EXPECT_THAT(verdict("a red circle left of two birds"), fails("a red circle is not left of two birds"));
  // The large circle is above both birds, but not the small one.
  EXPECT_THAT(verdict("two red circles above two birds"), fails("two red circles are not above two birds"));

  EXPECT_THAT(verdict(""), unclear("'a' or a number was expected"));
  EXPECT_THAT(verdict("the red circle"), unclear("'a' or a number was expected, not 'the'"));
  EXPECT_THAT(verdict("a red cube"), unclear("a shape was expected behind 'red', not 'cube'"));
  EXPECT_THAT(verdict("two bird"), unclear("a shape in the plural was expected behind 'two', not 'bird'"));
  EXPECT_THAT(verdict("a red circle near a bird"),
              unclear("a side, a relation, a comma, 'and' or the end was expected behind 'circle', not 'near'"));
  EXPECT_THAT(verdict("a red circle, a bird"), unclear("'and' was expected behind 'bird'"));
  EXPECT_THAT(verdict("a bird on the left of"), unclear("the end was expected behind 'left', not 'of'"));
  EXPECT_THAT(verdict("a bird above"), unclear("'a' or a number was expected behind 'above'"));
}

}  // namespace
}  // namespace vitrail::data
