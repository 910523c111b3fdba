// What the views of each method without labels are made by: the numbers of the papers' own code.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "vitrail/data/transforms.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"
#include "vitrail/train/pretrain/simclr.h"

namespace vitrail::train {
namespace {

// An image of noise in colours, so that each crop, colour and blur shows.
io::Image noise(std::int64_t side) {
  io::Image image(side, side);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(mix(7, i) % 256);
  }
  return image;
}

data::ImageConfig images_of(std::int64_t side) {
  data::ImageConfig images;
  images.height = images.width = side;
  return images;
}

// What all have in common: a random crop, a flip in half of the cases, jitter in 8 of 10, grayscale in 2 of 10.
data::AugmentOptions common(std::pair<double, double> scale, double blur, double solarize = 0) {
  data::AugmentOptions augment;
  augment.scale = scale;
  augment.color_jitter = {0.4, 0.4, 0.2, 0.1};
  augment.color_jitter_prob = 0.8;
  augment.grayscale_prob = 0.2;
  augment.train_interpolation = "bicubic";
  augment.blur_prob = blur;
  augment.solarize_prob = solarize;
  return augment;
}

void expect_same_pixels(const data::Transform& view, std::int64_t side, const data::AugmentOptions& expected,
                        const std::string& name) {
  const data::Transform reference = data::train_transform(images_of(side), expected);
  const io::Image image = noise(64);
  ASSERT_EQ(view.shape(), reference.shape()) << name;
  for (std::int64_t index = 0; index < 60; ++index) {
    ASSERT_EQ(view.prepared(image, 3, 0, index).pixels, reference.prepared(image, 3, 0, index).pixels) << name;
  }
}

// facebookresearch/dino, DataAugmentationDINO.
TEST(ViewRecipes, AreThoseOfDino) {
  PretrainDinoOptions options;
  options.local_crops_number = 3;
  const std::vector<data::Transform> views = options.view_transforms(images_of(48), 40);
  ASSERT_EQ(views.size(), 5U);
  expect_same_pixels(views[0], 48, common({0.4, 1}, 1), "first");
  expect_same_pixels(views[1], 48, common({0.4, 1}, 0.1, 0.2), "second");
  for (std::size_t i = 2; i < 5; ++i) {
    expect_same_pixels(views[i], 40, common({0.05, 0.4}, 0.5), "local");
  }
}

// facebookresearch/moco-v3, main_moco.py: augmentation1 and augmentation2 with --crop-min 0.08.
TEST(ViewRecipes, AreThoseOfMocoV3) {
  const std::vector<data::Transform> views = PretrainMocov3Options().view_transforms(images_of(48));
  ASSERT_EQ(views.size(), 2U);
  data::AugmentOptions first = common({0.08, 1}, 1);
  data::AugmentOptions second = common({0.08, 1}, 0.1, 0.2);
  first.train_interpolation = second.train_interpolation = "bilinear";
  expect_same_pixels(views[0], 48, first, "first");
  expect_same_pixels(views[1], 48, second, "second");
}

// Chen et al. 2020, appendix A, with strength 0.5.
TEST(ViewRecipes, AreThoseOfSimclr) {
  const std::vector<data::Transform> views = PretrainSimclrOptions().view_transforms(images_of(48));
  ASSERT_EQ(views.size(), 2U);
  data::AugmentOptions augment = common({0.08, 1}, 0.5);
  augment.color_jitter = {0.4, 0.4, 0.4, 0.1};
  expect_same_pixels(views[0], 48, augment, "first");
  expect_same_pixels(views[1], 48, augment, "second");
}

TEST(ViewRecipes, DoNotBlurImagesOf32Pixels) {
  expect_same_pixels(
      PretrainMocov3Options().view_transforms(images_of(32))[0], 32,
      [] {
        data::AugmentOptions augment = common({0.08, 1}, 0);
        augment.train_interpolation = "bilinear";
        return augment;
      }(),
      "of 32 pixels");
}

}  // namespace
}  // namespace vitrail::train
