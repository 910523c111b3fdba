#include "vitrail/data/resize.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/images.h"

namespace vitrail::data {
namespace {

class Resize : public ::testing::TestWithParam<std::string> {};

TEST_P(Resize, GivesPillowsPixels) {
  const io::Safetensors golden = test::golden("images/resize.safetensors");
  const io::Image image = test::to_image(golden.get("image"));
  const Interpolation interpolation = interpolation_named(GetParam());
  for (const auto& [width, height] :
       {std::pair(24, 24), {53, 20}, {31, 41}, {97, 65}, {1, 1}, {7, 90}, {53, 41}, {71, 19}, {43, 20}, {44, 23}}) {
    const std::string name = fmt::format("{}.{}x{}", GetParam(), width, height);
    test::expect_same_pixels(resize(image, width, height, interpolation), golden.get(name), name);
  }
}

TEST_P(Resize, OfARegionIsThatOfTheCroppedImage) {
  const io::Safetensors golden = test::golden("images/resize.safetensors");
  const io::Image image = test::to_image(golden.get("image"));
  const io::Image part = resize(image, {9, 4, 30, 17}, 16, 19, interpolation_named(GetParam()));
  test::expect_same_pixels(part, golden.get(GetParam() + ".region"), GetParam());
}

TEST_P(Resize, OfAWindowIsThatPartOfTheWhole) {
  const io::Image image = test::to_image(test::golden("images/resize.safetensors").get("image"));
  const Interpolation interpolation = interpolation_named(GetParam());
  for (const auto& [width, height] : {std::pair(24, 24), {53, 20}, {31, 41}, {97, 65}, {53, 41}, {71, 19}, {43, 20}}) {
    const io::Image whole = resize(image, width, height, interpolation);
    const Region window = {5, 7, width / 2, height / 3};
    const io::Image part = resize_window(image, width, height, window, interpolation);
    ASSERT_EQ(part.width, window.width);
    ASSERT_EQ(part.height, window.height);
    for (std::int64_t y = 0; y < window.height; ++y) {
      EXPECT_TRUE(std::equal(part.at(0, y), part.at(0, y) + 3 * window.width, whole.at(5, y + 7)))
          << width << " x " << height << ", row " << y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, Resize,
                         ::testing::Values("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
                         [](const auto& info) { return info.param; });

TEST(ResizeErrors, SayWhatDoesNotFit) {
  const io::Image image(4, 3);
  EXPECT_THROW(resize(image, 0, 3, Interpolation::bilinear), Error);
  EXPECT_THROW(resize(image, {2, 0, 3, 3}, 2, 2, Interpolation::bilinear), Error);
  EXPECT_THROW(resize_window(image, 8, 6, {6, 0, 3, 3}, Interpolation::bilinear), Error);
  EXPECT_THROW(resize(io::Image(), 2, 2, Interpolation::nearest), Error);
  EXPECT_THROW(interpolation_named("cubic"), Error);
}

}  // namespace
}  // namespace vitrail::data
