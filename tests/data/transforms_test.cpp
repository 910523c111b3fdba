#include "vitrail/data/transforms.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/data/image_ops.h"

namespace vitrail::data {
namespace {

ImageConfig small_config(std::int64_t side = 32) {
  ImageConfig config;
  config.height = config.width = side;
  return config;
}

AugmentOptions quiet() {
  AugmentOptions options;
  options.hflip = 0;
  options.color_jitter = {};
  options.train_interpolation = "bicubic";
  return options;
}

TEST(EvalTransform, GivesTimmsTensors) {
  const io::Safetensors golden = test::golden("images/transforms.safetensors");
  const nlohmann::json cases = nlohmann::json::parse(golden.metadata().at("eval"));
  const int images = std::stoi(golden.metadata().at("images"));
  for (std::size_t c = 0; c < cases.size(); ++c) {
    ImageConfig config;
    config.height = cases[c]["height"];
    config.width = cases[c]["width"];
    config.crop_mode = cases[c]["crop_mode"];
    config.crop_pct = cases[c]["crop_pct"];
    config.interpolation = cases[c]["interpolation"];
    config.mean = cases[c]["mean"].get<std::vector<double>>();
    config.std = cases[c]["std"].get<std::vector<double>>();
    const Transform transform = eval_transform(config);
    for (int i = 0; i < images; ++i) {
      const io::Image image = test::to_image(golden.get(fmt::format("image.{}", i)));
      test::expect_close(transform(image), golden.get(fmt::format("eval.{}.{}", c, i)), 1e-7,
                         fmt::format("{} of image {}", cases[c].dump(), i));
    }
  }
}

TEST(TrainTransform, GivesTimmsTensorsWhereNothingIsLeftToChance) {
  const io::Safetensors golden = test::golden("images/transforms.safetensors");
  const nlohmann::json cases = nlohmann::json::parse(golden.metadata().at("train"));
  const int images = std::stoi(golden.metadata().at("images"));
  ImageConfig config;
  config.height = 16;
  config.width = 20;
  config.mean = {0.485, 0.456, 0.406};
  config.std = {0.229, 0.224, 0.225};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    AugmentOptions options = quiet();
    options.no_aug = cases[c].value("no_aug", false);
    options.train_crop_mode = cases[c].value("train_crop_mode", "rrc");
    if (cases[c].contains("scale")) {
      options.scale = {1, 1};
      options.ratio = {1, 1};
    }
    const Transform transform = train_transform(config, options);
    for (int i = 0; i < images; ++i) {
      const io::Image image = test::to_image(golden.get(fmt::format("image.{}", i)));
      if (options.train_crop_mode == "rrc" && !options.no_aug && image.width == image.height) {
        continue;  // the region's place is drawn unless it is the fallback or the whole image
      }
      test::expect_close(transform(image, 5, 6, static_cast<std::int64_t>(i)),
                         golden.get(fmt::format("train.{}.{}", c, i)), 1e-7,
                         fmt::format("{} of image {}", cases[c].dump(), i));
    }
  }
}

TEST(EvalTransform, TakesNoMemoryForWhatTheCropLeavesOut) {
  // By the shorter side, this image would become 32 x 3,200,000 pixels.
  const io::Image ribbon = test::noise_image(1, 100'000);
  for (const char* mode : {"center", "squash", "border"}) {
    ImageConfig config = small_config();
    config.crop_mode = mode;
    EXPECT_EQ(eval_transform(config)(ribbon).shape().str(), Shape({3, 32, 32}).str());
  }
}

TEST(TrainTransform, DependsOnSeedEpochAndIndexAlone) {
  const Transform transform = train_transform(small_config(), {});
  const io::Image image = test::noise_image(50, 40);
  const auto values = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
    return transform(image, seed, epoch, index).values();
  };
  const auto first = values(1, 2, 3);
  EXPECT_EQ(first, values(1, 2, 3));
  EXPECT_NE(first, values(0, 2, 3));
  EXPECT_NE(first, values(1, 0, 3));
  EXPECT_NE(first, values(1, 2, 0));
}

TEST(TrainTransform, CropsAPaddedImageAtEveryOffset) {
  AugmentOptions options = quiet();
  options.train_crop_mode = "pad";
  options.crop_padding = 2;
  const Transform transform = train_transform(small_config(8), options);
  const io::Image image = test::noise_image(8, 8);
  std::set<std::pair<std::int64_t, std::int64_t>> offsets;
  for (std::int64_t index = 0; index < 400; ++index) {
    const io::Image crop = transform.prepared(image, 0, 0, index);
    int matches = 0;
    for (std::int64_t dy = -2; dy <= 2; ++dy) {
      for (std::int64_t dx = -2; dx <= 2; ++dx) {
        bool same = true;
        for (std::int64_t y = 0; y < 8; ++y) {
          for (std::int64_t x = 0; x < 8; ++x) {
            const bool inside = x + dx >= 0 && x + dx < 8 && y + dy >= 0 && y + dy < 8;
            const std::uint8_t expected = inside ? *image.at(x + dx, y + dy) : std::uint8_t{0};
            same = same && *crop.at(x, y) == expected;
          }
        }
        if (same) {
          offsets.emplace(dx, dy);
          ++matches;
        }
      }
    }
    EXPECT_EQ(matches, 1);
  }
  EXPECT_EQ(offsets.size(), 25U);
}

// torchvision's Resize(8) and RandomCrop(8, padding=2, padding_mode="reflect") of an image that is 8 pixels high.
TEST(TrainTransform, CropsSimplyWithMirroredEdges) {
  AugmentOptions options = quiet();
  options.train_crop_mode = "src";
  options.crop_padding = 2;
  const Transform transform = train_transform(small_config(8), options);
  const io::Image image = test::noise_image(10, 8);
  const auto mirrored = [](std::int64_t i, std::int64_t size) { return i < 0 ? -i : i < size ? i : 2 * size - 2 - i; };
  std::set<std::pair<std::int64_t, std::int64_t>> offsets;
  for (std::int64_t index = 0; index < 600; ++index) {
    const io::Image crop = transform.prepared(image, 0, 0, index);
    int matches = 0;
    for (std::int64_t dy = -2; dy <= 2; ++dy) {
      for (std::int64_t dx = -2; dx <= 4; ++dx) {
        bool same = true;
        for (std::int64_t y = 0; y < 8; ++y) {
          for (std::int64_t x = 0; x < 8; ++x) {
            same = same && *crop.at(x, y) == *image.at(mirrored(x + dx, 10), mirrored(y + dy, 8));
          }
        }
        if (same) {
          offsets.emplace(dx, dy);
          ++matches;
        }
      }
    }
    EXPECT_EQ(matches, 1);
  }
  EXPECT_EQ(offsets.size(), 35U);
  options.crop_padding = 8;
  EXPECT_THROW(train_transform(small_config(8), options), Error);
}

TEST(TrainTransform, FlipsInHalfOfTheCases) {
  AugmentOptions options = quiet();
  options.train_crop_mode = "pad";
  options.crop_padding = 0;
  options.hflip = 0.5;
  options.vflip = 0.25;
  const Transform transform = train_transform(small_config(6), options);
  const io::Image image = test::noise_image(6, 6);
  int mirrored = 0;
  int turned = 0;
  for (std::int64_t index = 0; index < 2000; ++index) {
    const io::Image seen = transform.prepared(image, 0, 0, index);
    const bool h = std::equal(seen.at(0, 0), seen.at(0, 0) + 3, image.at(5, 0)) ||
                   std::equal(seen.at(0, 0), seen.at(0, 0) + 3, image.at(5, 5));
    const bool v = std::equal(seen.at(0, 0), seen.at(0, 0) + 3, image.at(0, 5)) ||
                   std::equal(seen.at(0, 0), seen.at(0, 0) + 3, image.at(5, 5));
    mirrored += h ? 1 : 0;
    turned += v ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, 1000, 80);
  EXPECT_NEAR(turned, 500, 70);
}

// The flips of the reference's loader (tools/golden/airbench.py), and ours: each image in every other epoch.
TEST(TrainTransform, FlipsAlternately) {
  const Tensor golden = test::golden("airbench.safetensors").get("flips");
  const std::int64_t images = golden.size(1);
  AugmentOptions options = quiet();
  options.train_crop_mode = "pad";
  options.crop_padding = 0;
  options.hflip = 0.5;
  options.alternating_flip = true;
  const Transform transform = train_transform(small_config(6), options);
  const io::Image image = test::noise_image(6, 6);
  const auto flipped = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
    const io::Image seen = transform.prepared(image, seed, epoch, index);
    return std::equal(seen.at(0, 0), seen.at(0, 0) + 3, image.at(5, 0));
  };
  int first = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    const bool start = flipped(0, 0, index);
    first += start ? 1 : 0;
    for (std::int64_t epoch = 0; epoch < golden.size(0); ++epoch) {
      const std::int64_t* row = golden.data<std::int64_t>();
      const bool same = row[epoch * images + index % images] == row[index % images];
      EXPECT_EQ(flipped(0, epoch, index) == start, same) << "epoch " << epoch;
    }
  }
  EXPECT_NEAR(first, 500, 60);
  int alike = 0;
  for (std::int64_t index = 0; index < 100; ++index) {
    alike += flipped(0, 0, index) == flipped(1, 0, index) ? 1 : 0;
  }
  EXPECT_NEAR(alike, 50, 25) << "another seed flips others";
}

TEST(TrainTransform, FillsTheTargetInEveryCropMode) {
  for (const char* mode : {"rrc", "rkrc", "rkrr", "src", "pad"}) {
    AugmentOptions options;
    options.train_crop_mode = mode;
    options.color_jitter = {0.4, 0.4, 0.4, 0.1};
    options.grayscale_prob = 0.2;
    options.reprob = 0.5;
    const Transform transform = train_transform(small_config(17), options);
    for (const auto& [width, height] : {std::pair(1, 1), {3, 60}, {17, 17}, {40, 9}}) {
      for (std::int64_t index = 0; index < 40; ++index) {
        const Tensor x = transform(test::noise_image(width, height), 1, 1, index);
        EXPECT_EQ(x.shape().str(), Shape({3, 17, 17}).str());
      }
    }
  }
}

TEST(Transform, PreparesGrayImagesForModelsOfOneChannel) {
  ImageConfig config = small_config(8);
  config.channels = 1;
  const io::Image image = test::noise_image(8, 8);
  config.crop_pct = 1;
  const Tensor x = eval_transform(config)(image);
  EXPECT_EQ(x.shape().str(), Shape({1, 8, 8}).str());
  const std::uint8_t* rgb = image.at(0, 0);
  const int luma = (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
  EXPECT_NEAR(x.values()[0], (static_cast<double>(luma) / 255 - 0.5) / 0.5, 1e-6);
}

TEST(Transform, RefusesSettingsThatMakeNoSense) {
  const auto broken = [](auto change) {
    ImageConfig config = small_config();
    change(config);
    EXPECT_THROW(eval_transform(config), Error);
  };
  broken([](ImageConfig& c) { c.channels = 4; });
  broken([](ImageConfig& c) { c.height = 0; });
  broken([](ImageConfig& c) { c.crop_pct = 0; });
  broken([](ImageConfig& c) { c.crop_mode = "middle"; });
  broken([](ImageConfig& c) { c.interpolation = "best"; });
  broken([](ImageConfig& c) { c.std = {0.5, 0, 0.5}; });
  broken([](ImageConfig& c) { c.mean = {0.5, 0.5}; });
  const auto broken_training = [](auto change) {
    AugmentOptions options;
    change(options);
    EXPECT_THROW(train_transform(small_config(), options), Error);
  };
  broken_training([](AugmentOptions& o) { o.train_crop_mode = "five"; });
  broken_training([](AugmentOptions& o) { o.hflip = 2; });
  broken_training([](AugmentOptions& o) { o.scale = {1, 0.5}; });
  broken_training([](AugmentOptions& o) { o.color_jitter = {0.1, 0.1}; });
  broken_training([](AugmentOptions& o) { o.remode = "black"; });
  broken_training([](AugmentOptions& o) { o.crop_padding = -1; });
}

TEST(TrainTransform, BlursAndThenSolarizesWithPillowsPixels) {
  const io::Image image = test::noise_image(40, 40);
  AugmentOptions options = quiet();
  const io::Image plain = train_transform(small_config(), options).prepared(image);
  options.blur_prob = 1;
  options.blur_radius = {1.3, 1.3};
  io::Image expected = plain;
  gaussian_blur(expected, 1.3);
  EXPECT_EQ(train_transform(small_config(), options).prepared(image).pixels, expected.pixels);
  options.solarize_prob = 1;
  options.solarize_threshold = 100;
  solarize(expected, 100);
  EXPECT_EQ(train_transform(small_config(), options).prepared(image).pixels, expected.pixels);
  options.blur_prob = 0.3;
  options.solarize_prob = 0;
  int blurred = 0;
  for (std::int64_t index = 0; index < 400; ++index) {
    AugmentOptions sharp = options;
    sharp.blur_prob = 0;
    blurred += train_transform(small_config(), options).prepared(image, 0, 0, index).pixels !=
                       train_transform(small_config(), sharp).prepared(image, 0, 0, index).pixels
                   ? 1
                   : 0;
  }
  EXPECT_NEAR(blurred, 120, 30);
}

TEST(ShowsWhole, SaysIfAnImageIsCropped) {
  ImageConfig config;
  config.width = 64;
  config.height = 32;
  EXPECT_FALSE(shows_whole(config, 64, 32));
  config.crop_pct = 1;
  EXPECT_TRUE(shows_whole(config, 200, 100));
  EXPECT_FALSE(shows_whole(config, 100, 100));
  config.crop_mode = "border";
  EXPECT_FALSE(shows_whole(config, 100, 100));
  config.crop_mode = "squash";
  EXPECT_TRUE(shows_whole(config, 100, 100));

  config.crop_pct = 0.5;  // which a processor takes the place of
  config.width = 32;
  config.processor = ImageProcessor{ImageProcessor::Resize::shorter_side, 64, 64, 64, 64};
  EXPECT_TRUE(shows_whole(config, 90, 90));
  EXPECT_FALSE(shows_whole(config, 90, 80));
  config.processor = ImageProcessor{ImageProcessor::Resize::both, 64, 64, 64, 64};
  EXPECT_TRUE(shows_whole(config, 90, 80));
  config.processor = ImageProcessor{ImageProcessor::Resize::both, 70, 70, 64, 64};
  EXPECT_FALSE(shows_whole(config, 64, 64));
}

}  // namespace
}  // namespace vitrail::data
