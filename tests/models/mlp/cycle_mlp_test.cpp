#include "vitrail/models/mlp/cycle_mlp.h"

#include <gmock/gmock.h>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "tests/support/errors.h"

namespace vitrail::models {
namespace {

using test::error_of;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(CycleMlp, TimmVariant, testing::Values("cycle_mlp", "cycle_mlp_odd", "cycle_mlp_one_place"),
                         variant_name);

constexpr const char* small =
    R"({"layers": [1, 2], "embed_dims": [12, 16], "mlp_ratios": [2, 2], "num_classes": 5, "drop_path_rate": 0.3})";

TEST(CycleMlp, TakesImagesOfAnySize) {
  const Model model = create_model("cycle_mlp_b1", with(small));
  EXPECT_TRUE(model.net->takes_any_size());
  nn::Pass pass;
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{3, 3}, {3, 50}, {29, 31}}) {
    nn::Recorder recorder(true, true);
    pass.recorder = &recorder;
    EXPECT_EQ(model.net->forward(test::random_tensor({1, 3, height, width}), pass).shape(), (Shape{1, 5}));
    const TokenLayout layout = model.net->token_layout(height, width);
    EXPECT_EQ(recorder.features()[1].value.shape(), (Shape{1, 16, layout.rows, layout.columns}));
    EXPECT_TRUE(recorder.attention().empty());
  }
  EXPECT_EQ(error_of([&] {
              model.net->forward(Tensor::zeros({1, 3, 2, 9}), pass);
            }),
            "the model takes images from 3x3 pixels on, not of 2x9");
  EXPECT_THROW(model.net->forward(Tensor::zeros({1, 1, 32, 32}), pass), Error);
}

TEST(CycleMlp, KnowsItsOffsets) {
  const Model model = create_model("cycle_mlp_b1", with(small));
  const auto offsets = [&](const char* name) { return model.net->parameters.at(name).value.values(); };
  const std::vector<float> h = offsets("network.0.0.attn.sfc_h.offset");
  const std::vector<float> w = offsets("network.0.0.attn.sfc_w.offset");
  EXPECT_EQ(std::vector<float>(h.begin(), h.begin() + 8), (std::vector<float>{0, 0, 0, 1, 0, -1, 0, 0}));
  EXPECT_EQ(std::vector<float>(w.begin(), w.begin() + 8), (std::vector<float>{0, 0, 1, 0, -1, 0, 0, 0}));
  const Tensor other = Tensor::full({1, 24, 1, 1}, 1);
  EXPECT_THAT(error_of([&] {
                adapted(model, "network.0.0.attn.sfc_h.offset", other, {32, 32});
              }),
              HasSubstr("holds other offsets"));
}

TEST(CycleMlp, NamesTheArgumentThatIsWrong) {
  expect_refused("cycle_mlp_b1", R"({"layers": [2, 2]})", "one number for each stage");
  expect_refused("cycle_mlp_b1", R"({"layers": []})", "1 to 16 stages");
  expect_refused("cycle_mlp_b1", R"({"embed_dims": [64, 128, 320, 3]})", "4 channels");
  expect_refused("cycle_mlp_b1", R"({"embed_dim": 64})", "did you mean 'embed_dims'");
  expect_refused("cycle_mlp_b1", R"({"mlp_ratios": [4, 4, 4, 0.001]})", "mlp_ratios");
  expect_refused("cycle_mlp_b1", R"({"drop_path_rate": 1})", "drop_path_rate");
  expect_refused("cycle_mlp_b1", R"({"drop_rate": 0.1})", "'drop_rate'");
  expect_refused("cycle_mlp_b1", R"({"img_size": [2, 30]})", "img_size 2x30");
  expect_refused("cycle_mlp_b1", R"({"embed_dims": [1048576, 1048576, 1048576, 1048576], "img_size": 1048576})",
                 "FLOPs");
}

TEST(CycleMlp, RepeatsItsTrainingPassFromTheSameRandomStream) {
  const Model model = create_model("cycle_mlp_b1", with(small));
  expect_repeatable_training(model, test::random_tensor({4, 3, 24, 32}), "patch_embed.proj.weight");
}

}  // namespace
}  // namespace vitrail::models
