#include "vitrail/explain/patch_tokens.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::explain {
namespace {

using test::error_of;
using test::expect_close;

TEST(KMeans, IsScikitLearnsFromTheSameStart) {
  const io::Safetensors golden = test::golden("explain/patch_tokens.safetensors");
  for (const std::string name : {"near", "empty"}) {
    const KMeans groups = kmeans(golden.get("points"), golden.get(name + ".start"));
    EXPECT_TRUE(std::ranges::equal(groups.labels, golden.get(name + ".labels").span<std::int64_t>())) << name;
    expect_close(groups.centers, golden.get(name + ".centers"), 1e-5);
    EXPECT_NEAR(groups.inertia / static_cast<double>(golden.get(name + ".inertia").values()[0]), 1, 1e-5) << name;
    EXPECT_EQ(groups.iterations, golden.get(name + ".iterations").span<std::int64_t>()[0]) << name;
  }
}

TEST(KMeans, BeginsWithDifferentPointsBySeedAlone) {
  const Tensor points = test::golden("explain/patch_tokens.safetensors").get("points");
  const Tensor start = kmeans_start(points, 5, 3);
  EXPECT_EQ(start.shape(), Shape({5, 8}));
  expect_close(kmeans_start(points, 5, 3), start, 0);
  EXPECT_NE(kmeans_start(points, 5, 4).values(), start.values());
  EXPECT_EQ(error_of([] {
              kmeans_start(Tensor::full({4, 3}, 2.0), 2, 0);
            }),
            "there are only 1 different points, not 2");
  EXPECT_EQ(error_of([] { kmeans_start(Tensor::full({4, 3}, 2.0), 5, 0); }), "4 points cannot be put into 5 groups");
}

TEST(MutualMatches, AreEachOthersNearestByTheirCosines) {
  const io::Safetensors golden = test::golden("explain/patch_tokens.safetensors");
  const Tensor points = golden.get("points");
  const std::vector<Match> matches = mutual_matches(points.narrow(0, 0, 50), points.narrow(0, 50, 70));
  const Tensor pairs = golden.get("matches");
  const std::vector<float> similarities = golden.get("similarities").values();
  ASSERT_EQ(std::ssize(matches), pairs.size(0));
  for (std::size_t i = 0; i < matches.size(); ++i) {
    EXPECT_EQ(matches[i].first, pairs.span<std::int64_t>()[2 * i]);
    EXPECT_EQ(matches[i].second, pairs.span<std::int64_t>()[2 * i + 1]);
    EXPECT_NEAR(matches[i].similarity, static_cast<double>(similarities[i]), 1e-5);
  }
  EXPECT_EQ(error_of([&] {
              mutual_matches(points, Tensor::full({2, 3}, 1.0));
            }),
            "tokens of 8 and 3 numbers cannot be compared");
}

TEST(PatchTokens, AreTheFeaturesOnTheirGrid) {
  models::CreateOptions options;
  options.model_kwargs =
      R"({"img_size": [16, 24], "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3, "reg_tokens": 2})";
  const models::Model vit = models::create_model("vit_tiny_patch16_224", options);
  const Tensor x = test::random_tensor({1, 3, 16, 24});
  const Tensor tokens = patch_tokens(*vit.net, x);
  ASSERT_EQ(tokens.shape(), Shape({4, 6, 24}));
  nn::Pass pass;
  const Tensor all = vit.net->forward_features(x, pass);
  expect_close(tokens.select(0, 1).select(0, 2).contiguous(), all.select(0, 0).select(0, 3 + 8).contiguous(), 0);
  const models::Model resnet = models::create_model("resnet18", {});
  EXPECT_EQ(patch_tokens(*resnet.net, test::random_tensor({1, 3, 64, 96})).shape(), Shape({2, 3, 512}));
}

}  // namespace
}  // namespace vitrail::explain
