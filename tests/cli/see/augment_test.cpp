// vitrail augment.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Augment : public OnImages {};

TEST_F(Augment, DrawsASheet) {
  const std::string photo = path("data/validation/red/3.png");
  const Outcome made = vitrail("augment " + photo + " --aa rand-m9-mstd0.5-inc1 --reprob 0.3 --img-size 16 --rows 2 " +
                               "--columns 5 --output " + path("sheet.png"));
  ASSERT_EQ(made.status, 0) << made.err;
  const io::Image sheet = io::read_image(path("sheet.png"));
  constexpr std::int64_t zoom = 7;
  constexpr std::int64_t labels = 20;
  EXPECT_EQ(sheet.width, 5 * (16 * zoom + 6) - 6);
  EXPECT_EQ(sheet.height, labels + 2 * (16 * zoom + 6) - 6);
  const io::Image original = io::read_image(photo);
  const auto is_original = [&](std::int64_t left) {
    bool same = true;
    for (std::int64_t x = 0; x < 16; ++x) {
      same = same && std::equal(original.at(x, 5), original.at(x, 5) + 3, sheet.at(left + x * zoom, labels + 5 * zoom));
    }
    return same;
  };
  EXPECT_TRUE(is_original(0)) << "the first is as it is";
  EXPECT_FALSE(is_original(16 * zoom + 6));
  const Outcome wrong = vitrail("augment " + photo + " --aa orignal --output " + path("none.png"));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'original'"));
  EXPECT_FALSE(fs::exists(path("none.png")));
}

TEST_F(Augment, ShowsAWideImageInItsOwnShape) {
  io::Image wide(32, 8);
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 32; ++x) {
      wide.at(x, y)[x < 16 ? 0 : 2] = 255;
    }
  }
  io::write_png(path("wide.png"), wide);
  const Outcome made =
      vitrail("augment " + path("wide.png") + " --img-size 112 --rows 1 --output " + path("wide_sheet.png"));
  ASSERT_EQ(made.status, 0) << made.err;
  const io::Image sheet = io::read_image(path("wide_sheet.png"));
  // 112 x 28 pixels in the middle of 112 x 112, under 20 of labels.
  const auto color = [&](std::int64_t x, std::int64_t y) {
    return std::vector<int>(sheet.at(x, 20 + y), sheet.at(x, 20 + y) + 3);
  };
  EXPECT_EQ(color(20, 56), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(color(90, 56), (std::vector<int>{0, 0, 255}));
  EXPECT_EQ(color(20, 45), (std::vector<int>{255, 0, 0}));
  EXPECT_EQ(color(20, 38), color(90, 38)) << "above the image is nothing but a colour";
  EXPECT_EQ(color(20, 73), color(90, 38));
}

class AugmentedFolder : public OnImages {};

TEST_F(AugmentedFolder, MayHaveBrokenImagesLeftOut) {
  fs::create_directories(path("some"));
  fs::copy(path("data/train/red/0.png"), path("some/0.png"));
  fs::copy(path("data/train/red/1.png"), path("some/2.png"));
  write("some/1.png", "no image");
  const std::string sheet = "augment " + path("some") + " --img-size 16 --columns 2 --output " + path("sheet.png");
  refuses(sheet, "--skip-broken");
  EXPECT_FALSE(fs::exists(path("sheet.png")));
  const Outcome drawn = vitrail(sheet + " --skip-broken");
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.err, HasSubstr("left out: "));
  EXPECT_THAT(drawn.out, HasSubstr("3 rows"));
  fs::remove(path("some/0.png"));
  fs::remove(path("some/2.png"));
  refuses(sheet + " --skip-broken", "none of the images could be read");
}

}  // namespace
}  // namespace vitrail::test
