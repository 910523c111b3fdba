#include "vitrail/data/augment.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/images.h"

namespace vitrail::data {
namespace {

class Colors : public ::testing::Test {
 protected:
  template <class Operation>
  void expect_golden(const std::string& name, Operation operation) {
    io::Image image = test::to_image(golden.get("image"));
    operation(image);
    test::expect_same_pixels(image, golden.get(name), name);
  }
  io::Safetensors golden = test::golden("images/colors.safetensors");
};

TEST_F(Colors, ChangeAsTorchvisionChangesThem) {
  using Adjust = void (*)(io::Image&, double);
  const std::vector<std::pair<std::string, Adjust>> operations = {
      {"brightness", adjust_brightness}, {"contrast", adjust_contrast}, {"saturation", adjust_saturation}};
  for (const auto& [name, adjust] : operations) {
    for (const auto& [text, factor] :
         {std::pair("0.0", 0.0), {"0.37", 0.37}, {"1.0", 1.0}, {"1.4", 1.4}, {"2.5", 2.5}}) {
      expect_golden(fmt::format("{}.{}", name, text), [&](io::Image& image) { adjust(image, factor); });
    }
  }
  for (const auto& [text, factor] :
       {std::pair("-0.5", -0.5), {"-0.13", -0.13}, {"0.0", 0.0}, {"0.07", 0.07}, {"0.5", 0.5}}) {
    expect_golden(fmt::format("hue.{}", text), [&](io::Image& image) { adjust_hue(image, factor); });
  }
  expect_golden("grayscale", to_grayscale);
}

TEST_F(Colors, AreJitteredWithinTheirRangesInAnyOrder) {
  const io::Image original = test::to_image(golden.get("image"));
  ColorJitter none;
  EXPECT_FALSE(none.changes_anything());
  ColorJitter jitter;
  jitter.brightness = {0.5, 1.5};
  EXPECT_TRUE(jitter.changes_anything());
  Draws draws(Philox(1, 2));
  io::Image image = original;
  jitter_color(image, none, draws);
  EXPECT_EQ(image.pixels, original.pixels);
  jitter.brightness = {1.4, 1.4};
  jitter_color(image, jitter, draws);
  test::expect_same_pixels(image, golden.get("brightness.1.4"), "only brightness");
}

TEST(RandomResizedCrop, DrawsAreaAndAspectWithinTheirRanges) {
  Draws draws(Philox(3, 4));
  double smallest = 1;
  double largest = 0;
  for (int i = 0; i < 2000; ++i) {
    const Region region = random_resized_crop(200, 150, {0.2, 0.6}, {0.75, 4.0 / 3.0}, draws);
    ASSERT_GE(region.x, 0);
    ASSERT_GE(region.y, 0);
    ASSERT_LE(region.x + region.width, 200);
    ASSERT_LE(region.y + region.height, 150);
    const double area = static_cast<double>(region.width * region.height) / (200.0 * 150.0);
    const double aspect = static_cast<double>(region.width) / static_cast<double>(region.height);
    EXPECT_GT(aspect, 0.73);
    EXPECT_LT(aspect, 1.36);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
  }
  EXPECT_NEAR(smallest, 0.2, 0.02);
  EXPECT_NEAR(largest, 0.6, 0.02);
}

TEST(RandomResizedCrop, FallsBackToTheCentreWhereNothingFits) {
  Draws draws(Philox(3, 5));
  const Region wide = random_resized_crop(100, 10, {1, 1}, {0.5, 2}, draws);
  EXPECT_EQ(wide.width, 20);
  EXPECT_EQ(wide.height, 10);
  EXPECT_EQ(wide.x, 40);
  const Region tall = random_resized_crop(1, 100, {1, 1}, {0.5, 2}, draws);
  EXPECT_EQ(tall.width, 1);
  EXPECT_EQ(tall.height, 2);
  const Region pixel = random_resized_crop(1, 1, {0.08, 1}, {0.75, 4.0 / 3.0}, draws);
  EXPECT_EQ(pixel.width * pixel.height, 1);
}

TEST(RandomErasing, ErasesABoxOfTheAllowedArea) {
  constexpr std::int64_t side = 40;
  int erased = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    std::vector<float> image(3 * side * side, 1.0F);
    Draws draws(Philox(5, i));
    erase_randomly(image.data(), 3, side, side, {0.5, EraseMode::constant, 1}, draws);
    const auto zeros = std::count(image.begin(), image.end(), 0.0F);
    EXPECT_EQ(zeros % 3, 0);
    const double share = static_cast<double>(zeros) / (3.0 * side * side);
    erased += zeros > 0 ? 1 : 0;
    EXPECT_LT(share, 0.36);
  }
  EXPECT_NEAR(erased, 100, 25);
}

TEST(RandomErasing, FillsWithNoiseOrOneColor) {
  std::vector<float> noise(2 * 30 * 30, 9.0F);
  std::vector<float> color = noise;
  Draws a(Philox(5, 1));
  Draws b(Philox(5, 1));
  erase_randomly(noise.data(), 2, 30, 30, {1, EraseMode::pixel, 1}, a);
  erase_randomly(color.data(), 2, 30, 30, {1, EraseMode::color, 1}, b);
  const auto distinct = [](std::vector<float> values) {
    std::sort(values.begin(), values.end());
    return std::unique(values.begin(), values.end()) - values.begin();
  };
  EXPECT_EQ(distinct(color), 3);  // 9 and a colour for each channel
  EXPECT_GT(distinct(noise), 20);
}

}  // namespace
}  // namespace vitrail::data
