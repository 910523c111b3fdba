#include "vitrail/data/mix.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"

namespace vitrail::data {
namespace {

TEST(Mixup, BlendsPicturesAndLabelsAsTimmDoes) {
  const io::Safetensors golden = test::golden("pictures/mix.safetensors");
  const nlohmann::json cases = nlohmann::json::parse(golden.metadata().at("cases"));
  const Tensor labels = golden.get("labels");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Tensor x = golden.get("x").clone();
    Mixture mixture;
    mixture.lambda = cases[i]["lambda"];
    if (!cases[i]["center"].is_null()) {
      mixture = cutmix_box(mixture.lambda, cases[i]["center"][0], cases[i]["center"][1], x.size(2), x.size(3));
    }
    mix_pictures(x, mixture);
    test::expect_close(x, golden.get("x." + std::to_string(i)), 0, "pictures");
    const Tensor targets = mix_labels(labels.span<std::int64_t>(), 5, mixture.lambda, cases[i]["smoothing"]);
    test::expect_close(targets, golden.get("targets." + std::to_string(i)), 1e-7, "targets");
  }
}

TEST(Mixup, MixesTheMiddleOfAnOddBatchWithItself) {
  Tensor x = test::random_tensor({3, 1, 2, 2});
  const Tensor before = x.clone();
  Mixture mixture;
  mixture.lambda = 0.25;
  mix_pictures(x, mixture);
  test::expect_close(x.select(0, 1), before.select(0, 1), 1e-6);
  Mixture box = cutmix_box(0.5, 1, 1, 2, 2);
  x = before.clone();
  mix_pictures(x, box);
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
  EXPECT_THROW(mix_labels(labels, 3, 0.5, 0), Error);
}

}  // namespace
}  // namespace vitrail::data
