#include "vitrail/models/vit.h"

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(Vit, TimmVariant,
                         testing::Values("plain", "avg", "distilled", "deit3", "reg4", "dinov2", "relpos",
                                         "relpos_bias", "relpos_shared", "relpos_cls", "relpos_rpn", "map", "norms",
                                         "clip", "post_norm", "rectangles", "padded", "tokens", "features"),
                         variant_name);

TEST(VisionTransformer, DistilledGivesBothHeads) {
  const Model model = load_model(golden_path("models/distilled"));
  const io::Safetensors expected = golden("models/distilled/expected.safetensors");
  for (const bool training : {true, false}) {
    nn::Pass pass{.training = training};
    const std::vector<Tensor> heads = model.net->forward_heads(expected.get("x"), pass);
    ASSERT_EQ(heads.size(), 2U);
    expect_close(heads[0], expected.get("head"), 1e-4);
    expect_close(heads[1], expected.get("head_dist"), 1e-4);
    expect_close((heads[0] + heads[1]) * 0.5F, expected.get("logits"), 1e-4);
  }
}

TEST(VisionTransformer, LoadsForAnotherPictureSizeAsTimm) {
  const io::Safetensors expected = golden("models/adapted.safetensors");
  expect_adapted(expected, "larger", "plain", R"({"img_size": 48})");
  expect_adapted(expected, "other_shape", "reg4", R"({"img_size": [40, 24]})");
  expect_adapted(expected, "grayscale", "plain", R"({"in_chans": 1})");
  expect_adapted(expected, "five_channels", "clip", R"({"in_chans": 5})");
  expect_adapted(expected, "relpos_larger", "relpos", R"({"img_size": 40})");
  expect_adapted(expected, "relpos_bias_larger", "relpos_bias", R"({"img_size": [48, 32]})");
}

TEST(VisionTransformer, TakesALinearPatchEmbedding) {
  const Model model = load_model(golden_path("models/plain"));
  const Tensor weight = model.net->parameters.at("patch_embed.proj.weight").value;
  const Tensor flat = weight.detach().reshape({weight.size(0), -1});
  expect_close(model.net->adapt("patch_embed.proj.weight", flat, {32, 32}), weight, 0);
}

TEST(VisionTransformer, IsMadeFromCodeToo) {
  VitConfig config;
  config.img_size = {16, 16};
  config.patch_size = {4, 4};
  config.embed_dim = 16;
  config.depth = 2;
  config.num_heads = 2;
  config.num_classes = 3;
  config.global_pool = nn::Pool::sum;
  config.pos_embed = VitConfig::Positions::sincos;
  config.class_token = false;
  const VisionTransformer model(config, {1});
  EXPECT_TRUE(model.parameters.at("pos_embed").buffer);
  EXPECT_NE(model.parameters.find("fc_norm.weight"), nullptr);
  nn::Pass pass;
  EXPECT_EQ(model.forward(test::random_tensor({2, 3, 16, 16}), pass).shape(), (Shape{2, 3}));
  const TokenLayout layout = model.token_layout(16, 16);
  EXPECT_EQ(layout.rows * layout.columns, 16);
  EXPECT_EQ(layout.prefix, 0);
  EXPECT_FALSE(layout.class_token);
}

TEST(VisionTransformer, RepeatsItsTrainingPassFromTheSameRandomStream) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3,
                             "drop_rate": 0.1, "pos_drop_rate": 0.1, "proj_drop_rate": 0.1, "attn_drop_rate": 0.1,
                             "drop_path_rate": 0.2})";
  const Model model = create_model("vit_tiny_patch16_224", options);
  expect_repeatable_training(model, test::random_tensor({4, 3, 32, 32}), "blocks.0.attn.qkv.weight");
}

TEST(VisionTransformer, NamesTheArgumentThatIsWrong) {
  const std::string vit = "vit_tiny_patch16_224";
  expect_refused(vit, R"({"embed_dims": 10})", "did you mean 'embed_dim'");
  expect_refused(vit, R"({"depth": "twelve"})", "'depth'");
  expect_refused(vit, R"({"depth": 2.5})", "'depth'");
  expect_refused(vit, R"({"qkv_bias": 1})", "'qkv_bias'");
  expect_refused(vit, R"({"img_size": [32, 32, 32]})", "'img_size'");
  expect_refused(vit, R"({"num_heads": 5})", "num_heads 5");
  expect_refused(vit, R"({"global_pool": "mean"})", "'global_pool'");
  expect_refused(vit, R"({"norm_layer": "batchnorm"})", "'norm_layer'");
  expect_refused(vit, R"({"act_layer": "geluu"})", "'act_layer'");
  expect_refused(vit, R"({"class_token": false})", "class_token");
  expect_refused(vit, R"({"drop_path_rate": 1.5})", "'drop_path_rate'");
  expect_refused(vit, R"({"img_size": 8})", "img_size 8x8");
  expect_refused(vit, R"({"rel_pos_type": "mlp"})", "'rel_pos_type'");
  expect_refused("vit_relpos_small_patch16_224", R"({"reg_tokens": 2})", "'reg_tokens'");
  expect_refused("deit_tiny_distilled_patch16_224", R"({"global_pool": "avg"})", "distilled");
}

TEST(VisionTransformer, SaysWhichPicturesItTakes) {
  const Model model = load_model(golden_path("models/plain"));
  nn::Pass pass;
  EXPECT_THROW(model.net->forward(test::random_tensor({1, 3, 40, 32}), pass), Error);
  EXPECT_THROW(model.net->forward(test::random_tensor({1, 1, 32, 32}), pass), Error);
  EXPECT_THROW(model.net->forward(test::random_tensor({3, 32, 32}), pass), Error);
  const Model dynamic = load_model(golden_path("models/dinov2"));
  EXPECT_NO_THROW(dynamic.net->forward(test::random_tensor({1, 3, 40, 16}), pass));
  EXPECT_THROW(dynamic.net->forward(test::random_tensor({1, 3, 41, 16}), pass), Error);
}

}  // namespace
}  // namespace vitrail::models
