#include "vitrail/data/pairs/captioned_images.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/scenes/describe.h"
#include "vitrail/data/scenes/sample.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/io/image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void draw(const fs::path& file) {
  fs::create_directories(file.parent_path());
  io::write_png(file, io::Image(2, 2));
}

TEST(CaptionedImages, AreThoseOfClassesByTheirNames) {
  const test::TemporaryFolder folder;
  for (const char* part : {"train", "validation"}) {
    draw(folder / part / "red bird" / "0.png");
    draw(folder / part / "square" / "1.png");
  }
  const CaptionedImages whole = open_captioned_images(folder.path(), {.split = "validation"});
  EXPECT_THAT(whole.texts, ElementsAre(ElementsAre("red bird"), ElementsAre("square")));
  EXPECT_TRUE(whole.scenes.empty());
  EXPECT_THAT(error_of([&] { open_captioned_images(folder.path(), {.split = "holdout"}); }), HasSubstr("holdout"));
}

TEST(CaptionedImages, AreInPartsOfAFolder) {
  const test::TemporaryFolder folder;
  for (const char* part : {"train", "val"}) {
    draw(folder / part / "a.png");
    std::ofstream(folder / part / "captions.csv") << "path,caption\na.png,a thing of " << part << "\na.png,a thing\n";
  }
  EXPECT_THAT(open_captioned_images(folder.path(), {.split = "train"}).texts,
              ElementsAre(ElementsAre("a thing of train", "a thing")));
  EXPECT_THAT(open_captioned_images(folder.path(), {.split = "validation"}).texts,
              ElementsAre(ElementsAre("a thing of val", "a thing")));
  EXPECT_THAT(open_captioned_images(folder / "val", {.split = "train"}).texts,
              ElementsAre(ElementsAre("a thing of val", "a thing")))
      << "a source without parts is all for training";
  EXPECT_THAT(error_of([&] { open_captioned_images(folder / "val", {.split = "validation"}); }),
              HasSubstr("there is no part 'validation': no column 'split'"));
}

// Shards with a .txt beside each image are pairs; one with a class for each is not.
TEST(CaptionedImages, AreToldApartInArchives) {
  const test::TemporaryFolder folder;
  draw(folder / "a.png");
  std::ofstream(folder / "text") << "a thing";
  test::TarWriter pairs;
  pairs.add_file("a.png", folder / "a.png");
  pairs.add_file("a.txt", folder / "text");
  pairs.write(folder / "pairs.tar");
  test::TarWriter classes;
  classes.add_file("square/a.png", folder / "a.png");
  classes.write(folder / "classes.tar");
  EXPECT_THAT(open_captioned_images(folder / "pairs.tar").texts, ElementsAre(ElementsAre("a thing")));
  EXPECT_THAT(open_captioned_images(folder / "classes.tar").texts, ElementsAre(ElementsAre("square")));
}

TEST(CaptionedImages, KnowTheScenesThatWereDrawn) {
  const test::TemporaryFolder folder;
  SceneFolder files;
  files.first = 40;
  files.count = 3;
  write_scenes(folder.path(), files);
  const CaptionedImages pairs = open_captioned_images(folder.path(), {.scenes = true});
  ASSERT_EQ(pairs.scenes.size(), 3);
  EXPECT_EQ(pairs.scenes[2].index, 42);
  EXPECT_EQ(pairs.texts[0].size(), 5);
  EXPECT_TRUE(open_captioned_images(folder.path()).scenes.empty());
  const CaptionedImages drawn = open_captioned_images("scenes:start=40,count=3", {.split = "train", .scenes = true});
  ASSERT_EQ(drawn.scenes.size(), 3);
  EXPECT_EQ(drawn.scenes[2].objects.size(), pairs.scenes[2].objects.size());
  EXPECT_EQ(drawn.texts, pairs.texts);
}

TEST(CaptionedImages, KnowWhatTheCaptionsOfScenesAreAbout) {
  const test::TemporaryFolder folder;
  SceneFolder files;
  files.first = 40;
  files.count = 3;
  files.side = 96;
  write_scenes(folder.path(), files);
  const CaptionedImages pairs = open_captioned_images(folder.path(), {.places = true});
  EXPECT_TRUE(open_captioned_images("scenes:start=40,count=3,size=96").places.empty());
  const CaptionedImages drawn = open_captioned_images("scenes:start=40,count=3,size=96", {.places = true});
  ASSERT_EQ(pairs.places.size(), 3);
  ASSERT_EQ(drawn.places.size(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Scene scene = sample_scene({}, 40 + i);
    const std::vector<SceneCaption> captions = scene_captions(scene);
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(pairs.places[at].size(), captions.size());
    ASSERT_EQ(drawn.places[at].size(), captions.size());
    for (std::size_t k = 0; k < captions.size(); ++k) {
      ASSERT_EQ(pairs.places[at][k].size(), captions[k].about.size());
      for (std::size_t b = 0; b < captions[k].about.size(); ++b) {
        const Box& box = pairs.places[at][k][b];
        const SceneBox& planned = scene.objects[captions[k].about[b]].box;  // in 256ths of the image
        EXPECT_NEAR(box.x0, static_cast<double>(planned.left) / 256, 0.02);
        EXPECT_NEAR(box.y1, static_cast<double>(planned.bottom) / 256, 0.02);
        EXPECT_EQ(drawn.places[at][k][b].x0, box.x0);
        EXPECT_EQ(drawn.places[at][k][b].y1, box.y1);
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::data
