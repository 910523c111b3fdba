#include "vitrail/data/auto_augment.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/data/transforms.h"

namespace vitrail::data {
namespace {

using ::testing::HasSubstr;

constexpr Color fill = {124, 116, 104};  // of tools/golden/auto_augment.py

class AutoAugmentation : public ::testing::Test {
 protected:
  nlohmann::json metadata(const std::string& name) { return nlohmann::json::parse(golden.metadata().at(name)); }
  io::Image original(int i) { return test::to_image(golden.get(fmt::format("image.{}", i))); }
  io::Safetensors golden = test::golden("images/auto_augment.safetensors");
};

TEST_F(AutoAugmentation, OperationsGiveTimmsPixels) {
  const nlohmann::json cases = metadata("cases");
  std::set<std::string> names;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    DrawnOperation operation;
    operation.operation = operation_named(cases[i]["operation"].get<std::string>());
    operation.level = cases[i]["level"];
    operation.negative = cases[i]["negative"];
    operation.interpolation = interpolation_named(cases[i]["interpolation"]);
    operation.unit = cases[i]["unit"];
    io::Image image = original(cases[i]["image"]);
    augment(image, operation, cases[i].value("translate_pct", 0.45), fill);
    test::expect_same_pixels(image, golden.get(fmt::format("case.{}", i)), cases[i].dump());
    names.emplace(name_of(operation.operation));
  }
  EXPECT_EQ(names.size(), 25U);
}

TEST_F(AutoAugmentation, MixesChainsAsTimmDoes) {
  const nlohmann::json mixes = metadata("augmix");
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    AutoAugment policy = auto_augment_named("augmix");
    policy.mix_blended = mixes[i]["blended"];
    DrawnAugmentation drawn;
    drawn.weights = mixes[i]["weights"].get<std::vector<float>>();
    drawn.blend = mixes[i]["share"];
    for (const auto& chain : mixes[i]["chains"]) {
      drawn.chains.emplace_back();
      for (const auto& name : chain) {
        drawn.chains.back().push_back(
            {operation_named(name.get<std::string>()), mixes[i]["level"], true, Interpolation::bilinear, 0.2});
      }
    }
    io::Image image = original(0);
    augment(image, drawn, policy, fill);
    test::expect_same_pixels(image, golden.get(fmt::format("augmix.{}", i)), mixes[i].dump());
  }
}

TEST_F(AutoAugmentation, PoliciesAreTimms) {
  const nlohmann::json policies = metadata("policies");
  EXPECT_GE(policies.size(), 13U);
  for (const auto& [name, expected] : policies.items()) {
    const AutoAugment policy = auto_augment_named(name);
    ASSERT_EQ(policy.choices.size(), expected["choices"].size()) << name;
    for (std::size_t i = 0; i < policy.choices.size(); ++i) {
      ASSERT_EQ(policy.choices[i].size(), expected["choices"][i].size()) << name;
      for (std::size_t j = 0; j < policy.choices[i].size(); ++j) {
        const PolicyStep& step = policy.choices[i][j];
        const auto& wanted = expected["choices"][i][j];
        EXPECT_EQ(name_of(step.operation), wanted[0].get<std::string>()) << name;
        EXPECT_EQ(step.probability, wanted[1].get<double>()) << name;
        EXPECT_EQ(step.magnitude, wanted[2].get<double>()) << name;
      }
    }
    const double std = expected["std"];
    EXPECT_EQ(policy.magnitude_std, std < 0 ? std::numeric_limits<double>::infinity() : std) << name;
    EXPECT_EQ(policy.magnitude_max, expected["max"].get<double>()) << name;
    if (expected.contains("layers")) {
      EXPECT_EQ(policy.num_layers, expected["layers"].get<std::int64_t>()) << name;
      const auto weights = expected["weights"].get<std::vector<double>>();
      ASSERT_EQ(policy.weights.size(), weights.size()) << name;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        EXPECT_DOUBLE_EQ(policy.weights[i], weights[i]) << name;
      }
    }
    if (expected.contains("width")) {
      EXPECT_EQ(policy.mix_width, expected["width"].get<std::int64_t>()) << name;
      EXPECT_EQ(policy.mix_depth, expected["depth"].get<std::int64_t>()) << name;
      EXPECT_EQ(policy.mix_alpha, expected["alpha"].get<double>()) << name;
      EXPECT_EQ(policy.mix_blended, expected["blended"].get<bool>()) << name;
    }
  }
}

// Draws a policy many times, each time for another image.
template <class Look>
void draw_often(const std::string& name, int times, Look look) {
  const AutoAugment policy = auto_augment_named(name);
  for (int i = 0; i < times; ++i) {
    Draws draws(Philox(17, static_cast<std::uint64_t>(i)));
    look(draw_augmentation(policy, draws));
  }
}

TEST(DrawAugmentation, RandAugmentTakesEachOperationAlikeWithItsProbability) {
  std::map<std::string_view, int> counts;
  int all = 0;
  int negative = 0;
  int bicubic = 0;
  double sum = 0;
  double squares = 0;
  draw_often("rand-m5-n3-p0.6-mstd0.5", 5000, [&](const DrawnAugmentation& drawn) {
    ASSERT_EQ(drawn.chains.size(), 1U);
    ASSERT_LE(drawn.chains[0].size(), 3U);
    for (const DrawnOperation& operation : drawn.chains[0]) {
      ++counts[name_of(operation.operation)];
      ++all;
      negative += operation.negative ? 1 : 0;
      bicubic += operation.interpolation == Interpolation::bicubic ? 1 : 0;
      sum += operation.level;
      squares += (operation.level - 5) * (operation.level - 5);
    }
  });
  EXPECT_NEAR(all, 9000, 250);
  EXPECT_NEAR(negative, all / 2, 200);
  EXPECT_NEAR(bicubic, all / 2, 200);
  EXPECT_NEAR(sum / all, 5, 0.03);
  EXPECT_NEAR(std::sqrt(squares / all), 0.5, 0.02);
  EXPECT_EQ(counts.size(), 15U);
  for (const auto& [name, count] : counts) {
    EXPECT_NEAR(count, 600, 110) << name;
  }
}

TEST(DrawAugmentation, WeightsAreFollowedAndNothingIsTakenTwice) {
  std::map<std::string_view, int> first;
  draw_often("rand-n2-p1-tweights", 6000, [&](const DrawnAugmentation& drawn) {
    ASSERT_EQ(drawn.chains[0].size(), 2U);
    EXPECT_NE(drawn.chains[0][0].operation, drawn.chains[0][1].operation);
    ++first[name_of(drawn.chains[0][0].operation)];
  });
  // Of weights that add up to 10.1.
  EXPECT_NEAR(first["Rotate"], 6000 * 3 / 10.1, 130);
  EXPECT_NEAR(first["ShearX"], 6000 * 2 / 10.1, 120);
  EXPECT_NEAR(first["TranslateYRel"], 6000 / 10.1, 90);
  EXPECT_NEAR(first["Invert"], 6000 * 0.05 / 10.1, 20);
}

TEST(DrawAugmentation, LevelsStayWithinTheirBounds) {
  double largest = 0;
  draw_often("rand-m9-p1-mstd4", 2000, [&](const DrawnAugmentation& drawn) {
    for (const DrawnOperation& operation : drawn.chains[0]) {
      EXPECT_GE(operation.level, 0);
      EXPECT_LE(operation.level, 10);
      largest = std::max(largest, operation.level);
    }
  });
  EXPECT_EQ(largest, 10);
  double sum = 0;
  draw_often("rand-m8-n1-p1-mstd101", 4000, [&](const DrawnAugmentation& drawn) {
    EXPECT_LT(drawn.chains[0][0].level, 8);
    sum += drawn.chains[0][0].level;
  });
  EXPECT_NEAR(sum / 4000, 4, 0.15);
}

TEST(DrawAugmentation, SubPoliciesAreDoneInOrder) {
  // The only one of the original policy that begins by sharpening: Sharpness with 0.4, then Invert with 0.6.
  int sharpened = 0;
  int both = 0;
  draw_often("original", 10000, [&](const DrawnAugmentation& drawn) {
    const std::vector<DrawnOperation>& chain = drawn.chains[0];
    if (!chain.empty() && chain[0].operation == Operation::sharpness) {
      ++sharpened;
      EXPECT_EQ(chain[0].level, 7);
      if (chain.size() == 2) {
        EXPECT_EQ(chain[1].operation, Operation::invert);
        ++both;
      }
    }
  });
  EXPECT_NEAR(sharpened, 160, 50);
  EXPECT_NEAR(both, 96, 40);
}

TEST(DrawAugmentation, ThreeAugmentDoesOneOfThreeThings) {
  std::map<std::string_view, int> counts;
  draw_often("3a", 3000, [&](const DrawnAugmentation& drawn) { ++counts[name_of(drawn.chains[0].at(0).operation)]; });
  EXPECT_EQ(counts.size(), 3U);
  for (const auto& [name, count] : counts) {
    EXPECT_NEAR(count, 1000, 110) << name;
  }
}

TEST(DrawAugmentation, AugMixDrawsShortChainsAndTheirWeights) {
  double blend = 0;
  double first = 0;
  std::set<std::size_t> lengths;
  draw_often("augmix", 2000, [&](const DrawnAugmentation& drawn) {
    ASSERT_EQ(drawn.chains.size(), 3U);
    ASSERT_EQ(drawn.weights.size(), 3U);
    EXPECT_NEAR(drawn.weights[0] + drawn.weights[1] + drawn.weights[2], 1, 1e-5);
    blend += drawn.blend;
    first += drawn.weights[0];
    for (const auto& chain : drawn.chains) {
      lengths.insert(chain.size());
      for (const DrawnOperation& operation : chain) {
        EXPECT_LT(operation.level, 3);
      }
    }
  });
  EXPECT_NEAR(blend / 2000, 0.5, 0.03);
  EXPECT_NEAR(first / 2000, 1.0 / 3, 0.03);
  EXPECT_EQ(lengths, (std::set<std::size_t>{1, 2, 3}));
}

std::string complaint_about(const std::string& policy) {
  try {
    auto_augment_named(policy);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AutoAugmentNamed, SaysWhatIsWrongWithAPolicyString) {
  EXPECT_THAT(complaint_about("rnad-m9"), HasSubstr("did you mean 'rand'"));
  EXPECT_THAT(complaint_about("orignal"), HasSubstr("'original'"));
  EXPECT_THAT(complaint_about("rand-m9-msdt0.5"), HasSubstr("did you mean 'mstd'"));
  EXPECT_THAT(complaint_about("rand-m9-inc"), HasSubstr("'inc' lacks its value"));
  EXPECT_THAT(complaint_about("rand-m9.5"), HasSubstr("whole number"));
  EXPECT_THAT(complaint_about("rand-m1e99"), HasSubstr("from 0 to 100"));
  EXPECT_THAT(complaint_about("rand-m1-m2"), HasSubstr("given twice"));
  EXPECT_THAT(complaint_about("rand-p1.5"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint_about("rand-p0.5x"), HasSubstr("'0.5x'"));
  EXPECT_THAT(complaint_about("rand-tall"), HasSubstr("'3a', '3aw' or 'weights'"));
  EXPECT_THAT(complaint_about("rand-n16-tweights"), HasSubstr("without taking one twice"));
  EXPECT_THAT(complaint_about("rand-w0"), HasSubstr("'w0' is none of its parts"));
  EXPECT_THAT(complaint_about("original-m9"), HasSubstr("'mstd'"));
  EXPECT_THAT(complaint_about("augmix-w0"), HasSubstr("from 1 to 100"));
  EXPECT_THAT(complaint_about(""), HasSubstr("there is no policy ''"));
  EXPECT_THAT(complaint_about("rand-"), HasSubstr("none of its parts"));
}

TEST(AutoAugmentNamed, GivesImagesOfTheTransformThatDependOnTheDrawsAlone) {
  ImageConfig config;
  config.height = config.width = 32;
  AugmentOptions options;
  options.aa = "rand-m9-mstd0.5-inc1";
  options.scale = {1, 1};
  options.ratio = {1, 1};
  options.hflip = 0;
  options.train_interpolation = "bicubic";
  const io::Image image = test::noise_image(32, 32);
  const Transform transform = train_transform(config, options);
  int changed = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const io::Image seen = transform.prepared(image, 1, 2, i);
    EXPECT_EQ(seen.pixels, transform.prepared(image, 1, 2, i).pixels);
    changed += seen.pixels != image.pixels ? 1 : 0;
  }
  // Neither of two operations is done in a quarter of the cases; then nothing changes, the colour jitter being off.
  EXPECT_NEAR(changed, 30, 8);
  options.train_interpolation = "lanczos";
  EXPECT_THROW(train_transform(config, options), Error);
}

TEST(ImageOps, TakeTheSmallestImages) {
  for (const auto& [width, height] : {std::pair(1, 1), {1, 7}, {2, 1}}) {
    for (int i = 0; i < 25; ++i) {
      io::Image image = test::noise_image(width, height);
      augment(image, {static_cast<Operation>(i), 8, true, Interpolation::bicubic, 0.5}, 0.45, fill);
      EXPECT_EQ(image.width, width);
      EXPECT_EQ(std::ssize(image.pixels), 3 * width * height);
    }
  }
  io::Image image = test::noise_image(5, 4);
  EXPECT_THROW(gaussian_blur(image, -1), Error);
  EXPECT_THROW(posterize(image, 9), Error);
  EXPECT_THROW(rotate(image, 10, Interpolation::lanczos, fill), Error);
  gaussian_blur(image, 100);  // far beyond the image's ends
  EXPECT_EQ(image.width, 5);
}

}  // namespace
}  // namespace vitrail::data
