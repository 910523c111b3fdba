#include "vitrail/data/mix.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"

namespace vitrail::data {
namespace {

TEST(Mixup, BlendsImagesAndLabelsAsTimmDoes) {
  const io::Safetensors golden = test::golden("images/mix.safetensors");
  const nlohmann::json cases = nlohmann::json::parse(golden.metadata().at("cases"));
  const Tensor labels = golden.get("labels");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Tensor x = golden.get("x").clone();
    Mixture mixture;
    mixture.lambda = cases[i]["lambda"];
    if (!cases[i]["center"].is_null()) {
      mixture = cutmix_box(mixture.lambda, cases[i]["center"][0], cases[i]["center"][1], x.size(2), x.size(3));
    }
    const std::vector<Mixture> mixtures(6, mixture);
    mix_images(x, mixtures);
    test::expect_close(x, golden.get("x." + std::to_string(i)), 0, "images");
    const Tensor targets = mix_labels(labels.span<std::int64_t>(), 5, mixtures, cases[i]["smoothing"]);
    test::expect_close(targets, golden.get("targets." + std::to_string(i)), 1e-7, "targets");
  }
}

TEST(Mixup, MixesEachImageOrPairByItselfAsTimmDoes) {
  const io::Safetensors golden = test::golden("images/mix.safetensors");
  const auto parsed = [&](const char* key) { return nlohmann::json::parse(golden.metadata().at(key)); };
  const auto lambdas = parsed("lambdas").get<std::vector<double>>();
  const auto cut = parsed("cut").get<std::vector<bool>>();
  const Tensor labels = golden.get("labels");
  for (const std::string mode : {"pair", "elem", "half"}) {
    Tensor x = golden.get("x").clone();
    if (mode == "half") {
      const Tensor bytes = golden.get("half.from");
      std::ranges::copy(bytes.span<std::uint8_t>(), x.data<float>());
    }
    std::vector<Mixture> mixtures(6);
    for (std::size_t i = 0; i < (mode == "elem" ? 6U : 3U); ++i) {
      // Around the middle of the nine rows and eleven columns.
      mixtures[i].lambda = lambdas[i];
      mixtures[i] = cut[i] ? cutmix_box(lambdas[i], 4, 5, 9, 11) : mixtures[i];
      if (mode == "pair") {
        mixtures[5 - i] = mixtures[i];
      }
    }
    mix_images(x, mixtures);
    Tensor targets = mix_labels(labels.span<std::int64_t>(), 5, mixtures, 0.1);
    const Tensor expected = golden.get(mode + ".x");
    if (mode == "half") {
      targets = targets.narrow(0, 0, 3);
      for (std::int64_t i = 0; i < expected.numel(); ++i) {  // there rounded to 8 bits
        ASSERT_NEAR(x.data<float>()[i], expected.data<std::uint8_t>()[i], 0.5001);
      }
    } else {
      test::expect_close(x, expected, 1e-6, mode);
    }
    test::expect_close(targets, golden.get(mode + ".targets"), 1e-6, mode);
  }
}

TEST(DrawMixture, SharesMixturesByMode) {
  MixOptions options;
  options.mixup = 1;
  const auto lambdas = [&](MixMode mode) {
    options.mode = mode;
    Draws draws(Philox(11, 1));
    std::vector<double> result;
    for (const Mixture& mixture : draw_mixtures(options, 5, 8, 8, draws)) {
      result.push_back(mixture.lambda);
    }
    return result;
  };
  const auto distinct = [](const std::vector<double>& values) { return std::set(values.begin(), values.end()).size(); };
  EXPECT_EQ(distinct(lambdas(MixMode::batch)), 1U);
  EXPECT_EQ(distinct(lambdas(MixMode::elem)), 5U);
  const std::vector<double> pair = lambdas(MixMode::pair);
  EXPECT_EQ(distinct(pair), 3U);
  EXPECT_EQ(pair[0], pair[4]);
  EXPECT_EQ(pair[1], pair[3]);
  const std::vector<double> half = lambdas(MixMode::half);
  EXPECT_EQ(distinct(half), 4U);
  EXPECT_EQ(half[3], 1);
  EXPECT_EQ(half[4], 1);
  EXPECT_EQ(mix_mode_named("pair"), MixMode::pair);
  EXPECT_THROW(mix_mode_named("quarter"), Error);
}

TEST(Mixup, MixesTheMiddleOfAnOddBatchWithItself) {
  Tensor x = test::random_tensor({3, 1, 2, 2});
  const Tensor before = x.clone();
  Mixture mixture;
  mixture.lambda = 0.25;
  mix_images(x, std::vector(3, mixture));
  test::expect_close(x.select(0, 1), before.select(0, 1), 1e-6);
  Mixture box = cutmix_box(0.5, 1, 1, 2, 2);
  x = before.clone();
  mix_images(x, std::vector(3, box));
  test::expect_close(x.select(0, 1), before.select(0, 1), 0);
}

TEST(DrawMixture, FollowsTheProbabilities) {
  MixOptions options;
  EXPECT_FALSE(options.enabled());
  options.mixup = 0.8;
  options.cutmix = 1;
  options.mixup_prob = 0.6;
  options.mixup_switch_prob = 0.3;
  int mixed = 0;
  int cut = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    Draws draws(Philox(9, i));
    const Mixture mixture = draw_mixture(options, 32, 24, draws);
    EXPECT_GE(mixture.lambda, 0);
    EXPECT_LE(mixture.lambda, 1);
    cut += mixture.cutmix ? 1 : 0;
    mixed += mixture.cutmix || mixture.lambda != 1 ? 1 : 0;
  }
  EXPECT_NEAR(mixed, 2400, 150);
  EXPECT_NEAR(cut, 720, 100);
}

TEST(DrawMixture, TakesCutmixBoxesBetweenTheGivenSides) {
  MixOptions options;
  options.cutmix_minmax = std::pair(0.25, 0.75);
  EXPECT_TRUE(options.enabled());
  for (std::uint64_t i = 0; i < 500; ++i) {
    Draws draws(Philox(10, i));
    const Mixture box = draw_mixture(options, 32, 40, draws);
    ASSERT_TRUE(box.cutmix);
    EXPECT_GE(box.bottom - box.top, 8);
    EXPECT_LT(box.bottom - box.top, 24);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.right, 40);
    const auto area = static_cast<double>((box.bottom - box.top) * (box.right - box.left));
    EXPECT_DOUBLE_EQ(box.lambda, 1 - area / (32 * 40));
  }
}

TEST(MixLabels, RefusesALabelOutOfRange) {
  const std::vector<std::int64_t> labels = {0, 3};
  EXPECT_THROW(smooth_labels(labels, 3, 0), Error);
}

}  // namespace
}  // namespace vitrail::data
