#include "vitrail/data/scenes/read.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/write.h"

namespace vitrail::data {
namespace {

using test::error_of;
using ::testing::HasSubstr;

TEST(ReadScenes, GivesTheObjectsThatWereDrawn) {
  const test::TemporaryFolder folder;
  const SceneFolder what{.scenes = {.seed = 3}, .first = 20, .count = 12, .side = 48};
  write_scenes(folder.path(), what);
  const auto scenes = read_scenes(folder / "scene.json");
  ASSERT_EQ(scenes.size(), 12U);
  for (const auto& [index, scene] : scenes) {
    const Scene drawn = sample_scene(what.scenes, index);
    EXPECT_EQ(scene.index, index);
    EXPECT_EQ(scene.seed, 3U);
    EXPECT_EQ(scene.objects, drawn.objects) << index;
    EXPECT_EQ(scene.background.sky, drawn.background.sky);
    EXPECT_EQ(scene.background.ground, drawn.background.ground);
  }
}

TEST(ReadScenes, SaysWhatDoesNotFit) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "scene.json").string();
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    return error_of([&] { read_scenes(path); });
  };
  const auto with_object = [](const std::string& object) {
    return R"({"info": {"seed": 0}, "scenes": [{"index": 4, "background": {"sky": "red"}, "objects": [)" + object +
           "]}]}";
  };
  EXPECT_THAT(error("{}"), HasSubstr("info"));
  EXPECT_EQ(error(R"({"info": {"seed": 0}})"), path + ": there is no list 'scenes', as `vitrail scenes` writes it");
  EXPECT_THAT(error(with_object(R"({"shape": "cube", "color": "red", "size": "small"})")),
              HasSubstr("'scenes' 0: 'objects' 0: 'shape' must be 'circle', 'square', 'triangle' or 'bird', but is"));
  EXPECT_THAT(error(with_object(R"({"shape": "circle", "color": "red", "size": "small"})")),
              HasSubstr("'objects' 0: there is no 'units', which earlier versions did not write"));
  EXPECT_THAT(error(with_object(R"({"shape": "circle", "color": "red", "size": "small", "units": [1, 2, 3]})")),
              HasSubstr("'units' has 3 numbers, not 4"));
}

}  // namespace
}  // namespace vitrail::data
