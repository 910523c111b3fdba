#include "vitrail/data/scenes/describe.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "vitrail/data/scenes/sample.h"

namespace vitrail::data {
namespace {

using ::testing::Contains;
using ::testing::Each;

SceneObject object_of(const std::string& kind, SceneSize size, std::int64_t x, std::int64_t y) {
  SceneObject object;
  object.kind = scene_kind(kind);
  object.size = size;
  object.box = {x - 20, y - 20, x + 20, y + 20};
  return object;
}

std::map<std::string, int> many_captions(Scene scene) {
  std::map<std::string, int> captions;
  for (scene.index = 0; scene.index < 300; ++scene.index) {
    for (const SceneCaption& caption : scene_captions(scene)) {
      ++captions[caption.text];
    }
  }
  return captions;
}

std::set<std::string> keys(const std::map<std::string, int>& map) {
  std::set<std::string> result;
  for (const auto& [key, value] : map) {
    result.insert(key);
  }
  return result;
}

TEST(SceneCaptions, SayAllThatIsTrueOfOneObject) {
  Scene scene;
  scene.objects = {object_of("orange circle", SceneSize::small, 50, 128)};
  EXPECT_EQ(keys(many_captions(scene)),
            (std::set<std::string>{"an orange circle on the left", "a small orange circle on the left"}));
  scene.objects[0] = object_of("red bird", SceneSize::large, 128, 200);
  EXPECT_EQ(keys(many_captions(scene)),
            (std::set<std::string>{"a red bird at the bottom", "a large red bird at the bottom"}));
}

TEST(SceneCaptions, NameRelationsListsAndGroups) {
  Scene scene;
  scene.objects = {object_of("red circle", SceneSize::large, 128, 40),
                   object_of("blue bird", SceneSize::small, 60, 200),
                   object_of("green bird", SceneSize::small, 190, 200)};
  const std::set<std::string> captions = keys(many_captions(scene));
  EXPECT_THAT(captions, Contains("a large red circle above two small birds"));
  EXPECT_THAT(captions, Contains("a red circle above two birds"));
  EXPECT_THAT(captions, Contains("a small blue bird left of a green bird"));
  EXPECT_THAT(captions, Contains("a small green bird below a red circle"));
  EXPECT_THAT(captions, Contains("two small birds at the bottom"));
  EXPECT_THAT(captions, Contains("a large red circle, a blue bird and a small green bird"));
  EXPECT_THAT(captions, Contains("a blue bird and a red circle"));
  for (const std::string& caption : captions) {
    EXPECT_EQ(caption.find("right of a red circle"), std::string::npos) << caption;
    EXPECT_EQ(caption.find("birds on the"), std::string::npos) << caption;
    EXPECT_EQ(caption.find("two red"), std::string::npos) << caption;
  }
}

TEST(SceneCaptions, HaveFewWordsAndFollowFromTheScene) {
  std::set<std::string> words;
  int repeated = 0;
  for (std::int64_t index = 0; index < 300; ++index) {
    const Scene scene = sample_scene({}, index);
    const std::vector<SceneCaption> captions = scene_captions(scene);
    EXPECT_EQ(scene_captions(scene), captions);
    ASSERT_EQ(captions.size(), 5U);
    std::set<std::string> different;
    for (const SceneCaption& caption : captions) {
      different.insert(caption.text);
      std::string plain = caption.text;
      std::erase(plain, ',');
      std::istringstream stream(plain);
      for (std::string word; stream >> word;) {
        words.insert(word);
      }
    }
    repeated += different.size() < 5 ? 1 : 0;
  }
  EXPECT_LE(words.size(), 60U);
  EXPECT_GE(words.size(), 30U);
  EXPECT_LE(repeated, 3);
}

TEST(SceneCaptions, SayWhichObjectsTheyName) {
  Scene scene;
  scene.objects = {object_of("red circle", SceneSize::large, 128, 40),
                   object_of("blue bird", SceneSize::small, 60, 200),
                   object_of("green bird", SceneSize::small, 190, 200)};
  std::map<std::string, std::vector<std::size_t>> about;
  for (scene.index = 0; scene.index < 300; ++scene.index) {
    for (const SceneCaption& caption : scene_captions(scene)) {
      about[caption.text] = caption.about;
    }
  }
  using ::testing::ElementsAre;
  EXPECT_THAT(about.at("a large red circle above two small birds"), ElementsAre(0, 1, 2));
  EXPECT_THAT(about.at("a small green bird below a red circle"), ElementsAre(2, 0));
  EXPECT_THAT(about.at("two small birds at the bottom"), ElementsAre(1, 2));
  EXPECT_THAT(about.at("a large red circle, a blue bird and a small green bird"), ElementsAre(0, 1, 2));
  EXPECT_THAT(about.at("a small blue bird at the bottom"), ElementsAre(1));
}

}  // namespace
}  // namespace vitrail::data
