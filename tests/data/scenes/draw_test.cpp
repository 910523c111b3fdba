#include "vitrail/data/scenes/draw.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/questions.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

using test::error_of;

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
  return hash(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// The same on every machine: if these change, data sets that somebody has made change too.
TEST(DrawScene, GivesTheSameBytesEverywhere) {
  std::uint64_t pixels = 0;
  std::uint64_t masks = 0;
  std::uint64_t words = 0;
  std::uint64_t questions = 0;
  std::uint64_t paraphrased = 0;
  for (std::int64_t index = 0; index < 50; ++index) {
    const Scene scene = sample_scene({}, index);
    const DrawnScene drawn = draw_scene(scene, index % 5 == 0 ? 96 : 64);
    pixels = mix(pixels, hash_of(drawn.image.pixels));
    masks = mix(masks, hash_of(drawn.objects));
    for (const SceneCaption& caption : scene_captions(scene)) {
      words = mix(words, hash(caption.text));
    }
    for (const SceneQuestion& question : scene_questions(scene)) {
      questions = mix(questions, hash(question.text + question.answer));
    }
    for (const SceneQuestion& question : scene_questions(scene, 8, true)) {
      paraphrased = mix(paraphrased, hash(question.text + question.answer));
    }
  }
  EXPECT_EQ(pixels, 2457329777302855431U);
  EXPECT_EQ(masks, 1966273504950077166U);
  EXPECT_EQ(words, 15734158215872568817U);
  EXPECT_EQ(questions, 1787998233340245720U);
  EXPECT_EQ(paraphrased, 4526877196896612898U);
}

TEST(DrawScene, GivesTheSameBytesOfScenesThatOverlapAndOfTwoBirds) {
  std::uint64_t overlapping = 0;
  std::uint64_t birds = 0;
  for (std::int64_t index = 0; index < 50; ++index) {
    const DrawnScene drawn = draw_scene(sample_scene({.overlap = true}, index));
    overlapping = mix(mix(overlapping, hash_of(drawn.image.pixels)), hash_of(drawn.objects));
    birds = mix(birds, hash_of(draw_scene(sample_scene({.task = SceneTask::same_different}, index)).image.pixels));
  }
  EXPECT_EQ(overlapping, 10663196392535333946U);
  EXPECT_EQ(birds, 6166641848255471924U);
}

SceneObject object_at(SceneShape shape, const SceneBox& box) {
  SceneObject object;
  object.kind = {SceneColor::red, shape};
  object.box = box;
  object.head = SceneColor::yellow;
  object.beak = SceneColor::black;
  return object;
}

TEST(DrawScene, MasksHaveTheAreasOfTheShapes) {
  Scene scene;
  scene.background.sky = SceneColor::blue;
  scene.objects = {object_at(SceneShape::circle, {8, 8, 80, 80}), object_at(SceneShape::square, {100, 8, 172, 80}),
                   object_at(SceneShape::triangle, {8, 120, 80, 192}),
                   object_at(SceneShape::bird, {100, 120, 184, 183})};
  const DrawnScene drawn = draw_scene(scene, 64);
  EXPECT_NEAR(static_cast<double>(area_of_object(drawn.objects, 1)), 3.14159 * 81, 4);
  EXPECT_EQ(area_of_object(drawn.objects, 2), 18 * 18);
  EXPECT_NEAR(static_cast<double>(area_of_object(drawn.objects, 3)), 18 * 9, 4);
  EXPECT_EQ(box_of_object(drawn.objects, 64, 1), (SceneBox{2, 2, 20, 20}));
  EXPECT_EQ(box_of_object(drawn.objects, 64, 2), (SceneBox{25, 2, 43, 20}));
  EXPECT_EQ(box_of_object(drawn.objects, 64, 5), SceneBox{});
  // The red of the square, with noise on it; the sky beside it.
  const std::uint8_t* square = drawn.image.at(34, 11);
  EXPECT_TRUE(square[0] > 190 && square[1] < 70 && square[2] < 70);
  const std::uint8_t* sky = drawn.image.at(60, 60);
  EXPECT_TRUE(sky[2] > 195 && sky[0] < 170);
  // The bird looks to the right: its head is yellow there, and what is left of its body is red.
  EXPECT_GT(drawn.image.at(41, 33)[1], 170);
  EXPECT_LT(drawn.image.at(32, 40)[1], 80);
  scene.objects[3].faces_left = true;
  const DrawnScene turned = draw_scene(scene, 64);
  EXPECT_GT(turned.image.at(29, 33)[1], 170);
  EXPECT_LT(turned.image.at(38, 40)[1], 80);
}

TEST(DrawScene, IsTheSameSceneAtEverySize) {
  const Scene scene = sample_scene({.seed = 1}, 2);
  for (const std::int64_t side : {32, 128, 512}) {
    const DrawnScene drawn = draw_scene(scene, side);
    ASSERT_EQ(std::ssize(drawn.objects), side * side);
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      const SceneBox box = box_of_object(drawn.objects, side, static_cast<std::int64_t>(i + 1));
      const SceneBox& units = scene.objects[i].box;
      EXPECT_NEAR(static_cast<double>(box.left), static_cast<double>(units.left * side) / 256, 2);
      EXPECT_NEAR(static_cast<double>(box.bottom), static_cast<double>(units.bottom * side) / 256, 2);
    }
  }
  EXPECT_EQ(error_of([&] { draw_scene(scene, 16); }), "a scene is drawn with 32 to 512 pixels a side, not 16");
}

TEST(DrawScene, MarksTheHeadsOfBirds) {
  Scene scene;
  scene.objects = {object_at(SceneShape::circle, {8, 8, 48, 48}), object_at(SceneShape::bird, {100, 100, 184, 163})};
  const DrawnScene right = draw_scene(scene, 64);
  const SceneBox bird = box_of_object(right.objects, 64, 2);
  const SceneBox head = box_of_object(right.heads, 64, 2);
  EXPECT_EQ(area_of_object(right.heads, 1), 0);
  EXPECT_EQ(head.top, bird.top);
  EXPECT_GT(head.left + head.right, bird.left + bird.right);
  for (std::size_t i = 0; i < right.heads.size(); ++i) {
    EXPECT_TRUE(right.heads[i] == 0 || right.objects[i] == 2);
  }
  const SceneBox beak = box_of_object(right.beaks, 64, 2);
  EXPECT_EQ(beak.right, bird.right);
  EXPECT_GE(beak.left, head.left + head.width() / 2);
  EXPECT_GT(beak.top, head.top);
  EXPECT_LE(beak.bottom, head.bottom);
  scene.objects[1].faces_left = true;
  const DrawnScene left = draw_scene(scene, 64);
  const SceneBox other = box_of_object(left.heads, 64, 2);
  EXPECT_LT(other.left + other.right, bird.left + bird.right);
  EXPECT_EQ(box_of_object(left.beaks, 64, 2).left, bird.left);
}

TEST(DrawScene, MarksTheBeakOfEveryBird) {
  for (std::int64_t index = 0; index < 200; ++index) {
    const Scene scene = sample_scene({}, index);
    const DrawnScene drawn = draw_scene(scene, 32);
    for (std::size_t i = 0; i < scene.objects.size(); ++i) {
      const bool has = box_of_object(drawn.beaks, 32, static_cast<std::int64_t>(i + 1)).width() > 0;
      EXPECT_EQ(has, scene.objects[i].kind.shape == SceneShape::bird) << index;
    }
  }
}

TEST(OutlinesOfObject, FollowTheEdgesOfItsPixels) {
  const std::vector<std::uint8_t> mask = {0, 1, 1, 0, 0,  //
                                          0, 1, 2, 0, 1,  //
                                          1, 0, 0, 0, 1,  //
                                          0, 3, 3, 3, 0,  //
                                          0, 3, 0, 3, 0};
  using Outlines = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(outlines_of_object(mask, 5, 1),
            (Outlines{{1, 0, 3, 0, 3, 1, 2, 1, 2, 2, 1, 2}, {4, 1, 5, 1, 5, 3, 4, 3}, {0, 2, 1, 2, 1, 3, 0, 3}}));
  EXPECT_EQ(outlines_of_object(mask, 5, 2), (Outlines{{2, 1, 3, 1, 3, 2, 2, 2}}));
  EXPECT_EQ(outlines_of_object(mask, 5, 3), (Outlines{{1, 3, 4, 3, 4, 5, 3, 5, 3, 4, 2, 4, 2, 5, 1, 5}}));
  EXPECT_TRUE(outlines_of_object(mask, 5, 4).empty());
}

TEST(OutlinesOfObject, LeaveHolesOut) {
  const std::vector<std::uint8_t> ring = {1, 1, 1, 1, 0, 1, 1, 1, 1};
  EXPECT_EQ(outlines_of_object(ring, 3, 1), (std::vector<std::vector<std::int64_t>>{{0, 0, 3, 0, 3, 3, 0, 3}}));
}

// The area inside of outlines of scenes, by the shoelace formula, is that of the masks.
TEST(OutlinesOfObject, EncloseTheMasks) {
  for (std::int64_t index = 0; index < 20; ++index) {
    const Scene scene = sample_scene({}, index);
    const DrawnScene drawn = draw_scene(scene);
    for (std::int64_t number = 1; number <= std::ssize(scene.objects); ++number) {
      std::int64_t twice = 0;
      for (const auto& outline : outlines_of_object(drawn.objects, 64, number)) {
        for (std::size_t i = 0; i < outline.size(); i += 2) {
          const std::size_t next = (i + 2) % outline.size();
          twice += outline[i] * outline[next + 1] - outline[next] * outline[i + 1];
        }
      }
      EXPECT_EQ(twice, 2 * area_of_object(drawn.objects, number)) << index << ' ' << number;
    }
  }
}

}  // namespace
}  // namespace vitrail::data
