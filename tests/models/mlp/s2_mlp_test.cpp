#include "vitrail/models/mlp/s2_mlp.h"

#include <gmock/gmock.h>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "tests/support/errors.h"

namespace vitrail::models {
namespace {

using test::error_of;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(S2Mlp, TimmVariant, testing::Values("s2_mlp", "s2_mlp_pre_norm", "s2_mlp_narrow"),
                         variant_name);

// Each place gets what stood beside it, and keeps its own at the border: nothing moves twice.
TEST(S2Mlp, ShiftsByOnePlaceInFourDirections) {
  const Tensor x = Tensor::empty({1, 3, 3, 4});
  for (std::int64_t i = 0; i < 9; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) {
      x.data<float>()[4 * i + c] = static_cast<float>(i);
    }
  }
  const Tensor y = spatial_shift(x);
  const auto channel = [&](int c) { return y.select(3, c).values(); };
  EXPECT_EQ(channel(0), (std::vector<float>{0, 0, 1, 3, 3, 4, 6, 6, 7}));
  EXPECT_EQ(channel(1), (std::vector<float>{1, 2, 2, 4, 5, 5, 7, 8, 8}));
  EXPECT_EQ(channel(2), (std::vector<float>{0, 1, 2, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(channel(3), (std::vector<float>{3, 4, 5, 6, 7, 8, 6, 7, 8}));
}

TEST(S2Mlp, TakesImagesOfWholePatches) {
  const Model model = load_model(test::golden_path("models/s2_mlp"));
  nn::Pass pass;
  EXPECT_EQ(model.net->forward(test::random_tensor({1, 3, 8, 48}), pass).shape(), (Shape{1, 7}));
  EXPECT_EQ(model.net->token_layout(8, 48).columns, 6);
  EXPECT_EQ(error_of([&] {
              model.net->forward(Tensor::zeros({1, 3, 36, 32}), pass);
            }),
            "an image of 36x32 is not made of whole patches of 8x8");
  EXPECT_THROW(model.net->forward(Tensor::zeros({1, 1, 32, 32}), pass), Error);
  EXPECT_THROW(model.net->forward(Tensor::zeros({3, 32, 32}), pass), Error);
}

TEST(S2Mlp, NamesTheArgumentThatIsWrong) {
  expect_refused("s2_mlp_deep_224", R"({"embed_dim": 30})", "four directions");
  expect_refused("s2_mlp_deep_224", R"({"num_blocks": 2})", "'num_blocks'");
  expect_refused("s2_mlp_deep_224", R"({"mlp_ratio": 0.001})", "mlp_ratio");
  expect_refused("s2_mlp_deep_224", R"({"img_size": 8})", "img_size 8x8");
  expect_refused("s2_mlp_deep_224", R"({"drop_path_rate": 1})", "drop rate");
}

TEST(S2Mlp, RepeatsItsTrainingPassFromTheSameRandomStream) {
  for (const char* pre_norm : {"true", "false"}) {
    const Model model = create_model(
        "s2_mlp_deep_224", with(std::string(R"({"patch_size": 8, "embed_dim": 24, "depth": 3, "drop_rate": 0.1,
                                                "proj_drop_rate": 0.1, "drop_path_rate": 0.3, "pre_norm": )") +
                                pre_norm + "}"));
    expect_repeatable_training(model, test::random_tensor({4, 3, 24, 32}), "patch_embed.proj.weight");
  }
}

}  // namespace
}  // namespace vitrail::models
