#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(Eva, TimmVariant,
                         testing::Values("rope", "rope_mixed", "rope_mixed_ape", "rope_dynamic", "rope_reg", "eva02",
                                         "eva02_base", "eva02_clip", "eva02_post", "pe", "dinov3", "dinov3_bias"),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(Beit, TimmVariant, testing::Values("beit", "beit_shared"), variant_name);

// Positions are resized, relative ones stretched, rotary ones made anew.
TEST(EvaAndBeit, LoadForAnotherImageSizeAsTimm) {
  const io::Safetensors expected = test::golden("models/eva_adapted.safetensors");
  expect_adapted(expected, "rope_larger", "rope", R"({"img_size": 48})");
  expect_adapted(expected, "rope_mixed_ape_larger", "rope_mixed_ape", R"({"img_size": [48, 40]})");
  expect_adapted(expected, "eva02_larger", "eva02", R"({"img_size": [56, 32]})");
  expect_adapted(expected, "beit_larger", "beit", R"({"img_size": [48, 32]})");
  expect_adapted(expected, "beit_shared_larger", "beit_shared", R"({"img_size": 48})");
}

TEST(EvaAndBeit, NameTheArgumentThatIsWrong) {
  const std::string rope = "vit_small_patch16_rope_224";
  expect_refused(rope, R"({"rope_type": "dinov4"})", "'rope_type'");
  expect_refused(rope, R"({"rope_temperature": 0})", "'rope_temperature'");
  expect_refused(rope, R"({"num_heads": 64})", "divisible by 4, not 6");
  expect_refused(rope, R"({"class_token": false})", "class_token");
  expect_refused(rope, R"({"rope_grid_index": "xy"})", "did you mean 'rope_grid_indexing'");
  expect_refused(rope, R"({"rope_type": "mixed", "rope_rotate_half": true})", "rope_rotate_half");
  expect_refused(rope, R"({"img_size": 8})", "img_size 8x8");
  expect_refused(rope, R"({"mlp_ratio": 0.001, "swiglu_mlp": true})", "no hidden unit");
  expect_refused("eva02_enormous_patch14_clip_224", R"({"qk_norm": true})", "use_post_norm");
  expect_refused("beit_base_patch16_224", R"({"global_pool": "map"})", "'global_pool'");
  expect_refused("beit_base_patch16_224", R"({"num_reg_tokens": 1})", "'num_reg_tokens'");
  expect_refused("beit_base_patch16_224", R"({"img_size": [15, 224]})", "img_size 15x224");
}

TEST(EvaAndBeit, SayWhichImagesTheyTake) {
  const Model eva = load_model(golden_path("models/eva02"));
  EXPECT_EQ(error_of_forward(eva, {1, 3, 32, 40}), "the model takes images of 40x32 (img_size), not of 32x40");
  const Model beit = load_model(golden_path("models/beit"));
  EXPECT_EQ(error_of_forward(beit, {1, 3, 32, 32}), "the model takes images of 32x24 (img_size), not of 32x32");
  const Model dynamic = load_model(golden_path("models/rope_dynamic"), with(R"({"dynamic_img_pad": false})"));
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 40, 16}), "no error");
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 41, 16}),
            "an image of 41x16 is not made of whole patches, as one is whose sides are multiples of 8 and 8; "
            "dynamic_img_pad would fill it up");
  expect_refused("eva02_tiny_patch14_224", R"({"img_size": 13})", "holds no patch of patch_size 14x14");
}

// Tables that are none: of fewer rows than the class token's three, and of no heads.
TEST(EvaAndBeit, MakeNothingOfTablesThatAreNone) {
  const Model model = load_model(golden_path("models/beit"));
  const std::string table = "blocks.0.attn.relative_position_bias_table";
  ASSERT_NE(model.net->parameters.find(table), nullptr);
  for (const std::int64_t rows : {0, 1, 2, 3}) {
    EXPECT_EQ(adapted(model, table, Tensor::zeros({rows, 3}), {32, 24}).shape(), (Shape{rows, 3}));
  }
  EXPECT_EQ(test::error_of([&] {
              adapted(model, table, Tensor::zeros({52, 0}), {32, 24});
            }),
            "the table [52, 0] of relative positions does not belong to a window of 4x4");
}

// What learned frequencies are for: they begin as turned axes of the published lengths, for each head and block its
// own.
TEST(MixedRotaryPositions, BeginAsTurnedAxes) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3})";
  const Model model = create_model("vit_small_patch16_rope_mixed_224", options);
  const Tensor freqs = model.net->parameters.at("rope.freqs").value;
  ASSERT_EQ(freqs.shape(), (Shape{2, 2, 3, 8}));
  const std::vector<float> f = freqs.values();
  std::set<float> first;
  for (std::size_t group = 0; group < 6; ++group) {
    first.insert(f[group * 8]);
    for (std::size_t i = 0; i < 4; ++i) {
      const double length = std::pow(10.0, -static_cast<double>(i) / 4);
      const auto x = static_cast<double>(f[group * 8 + i]);
      const auto y = static_cast<double>(f[48 + group * 8 + i]);
      EXPECT_NEAR(std::hypot(x, y), length, 1e-6);
      EXPECT_NEAR(static_cast<double>(f[group * 8 + 4 + i]), -y, 1e-6);  // a right angle further
      EXPECT_NEAR(static_cast<double>(f[48 + group * 8 + 4 + i]), x, 1e-6);
    }
  }
  EXPECT_EQ(first.size(), 6U);
}

}  // namespace
}  // namespace vitrail::models
