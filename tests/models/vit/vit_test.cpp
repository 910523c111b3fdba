#include "vitrail/models/vit/vit.h"

#include <map>

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(Vit, TimmVariant,
                         testing::Values("plain", "avg", "distilled", "deit3", "reg4", "dinov2", "relpos",
                                         "relpos_bias", "relpos_shared", "relpos_cls", "relpos_rpn", "map", "norms",
                                         "clip", "post_norm", "rectangles", "padded", "tokens", "features",
                                         "parallel_things", "parallel_scaling", "parallel_scaling_bias", "differential",
                                         "differential_parallel", "aimv2", "beit3"),
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

TEST(VisionTransformer, LoadsForAnotherImageSizeAsTimm) {
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
  expect_close(adapted(model, "patch_embed.proj.weight", flat, {32, 32}), weight, 0);
}

// The pooling's query attends to the patches alone, or to all tokens (pool_include_prefix).
TEST(VisionTransformer, GivesARecorderTheMapOfAttentionPooling) {
  const auto map_of = [](const std::string& name) {
    const Model model = load_model(golden_path("models") / name);
    nn::Recorder recorder(false, true);
    nn::Pass pass{.recorder = &recorder};
    model.net->forward(golden("models/" + name + "/expected.safetensors").get("x"), pass);
    EXPECT_EQ(recorder.attention().size(), 2U) << name;  // the blocks' alone
    return recorder.pool_attention().empty() ? Tensor() : recorder.pool_attention().at("attn_pool").value;
  };
  const Tensor siglip = map_of("map");
  ASSERT_EQ(siglip.shape(), (Shape{2, 3, 1, 16}));
  expect_close(ops::sum(siglip, {3}), Tensor::full({2, 3, 1}, 1), 1e-5);
  const Tensor pe = map_of("pe");  // the class token and 12 patches; the pooling has two heads
  ASSERT_EQ(pe.shape(), (Shape{2, 2, 1, 13}));
  expect_close(ops::sum(pe, {3}), Tensor::full({2, 2, 1}, 1), 1e-5);
  EXPECT_FALSE(map_of("plain").defined());
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
  nn::ParameterStore store({1});
  const VisionTransformer model(nn::Scope(store), config);
  EXPECT_TRUE(store.at("pos_embed").buffer);
  EXPECT_NE(store.find("fc_norm.weight"), nullptr);
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
  for (const auto& [name, weight] : std::map<std::string, std::string>{
           {"vit_tiny_patch16_224", "blocks.0.attn.qkv.weight"},
           {"vit_small_patch16_18x2_224", "blocks.0.attns.1.attn.qkv.weight"},
           {"vit_pwee_patch16_reg1_gap_256", "blocks.0.in_proj.weight"},
           {"vit_dpwee_patch16_reg1_gap_256", "blocks.1.lambda_q1"},
       }) {
    const Model model = create_model(name, options);
    expect_repeatable_training(model, test::random_tensor({4, 3, 32, 32}), weight);
  }
}

// What positions bring to attention reaches every kind of block: the order of the patches then matters, which it does
// not without positions.
TEST(VisionTransformer, GivesEveryKindOfBlockItsPositions) {
  for (const char* name : {"vit_tiny_patch16_224", "vit_small_patch16_18x2_224", "vit_pwee_patch16_reg1_gap_256",
                           "vit_dwee_patch16_reg1_gap_256", "vit_dpwee_patch16_reg1_gap_256"}) {
    for (const char* code : {"none", "alibi2d", "rope2d", "rope2d_mixed"}) {
      CreateOptions options;
      options.model_kwargs = nlohmann::json{{"img_size", 16},   {"patch_size", 4},      {"embed_dim", 16},
                                            {"depth", 2},       {"num_heads", 2},       {"pos_embed", code},
                                            {"init_values", 1}, {"weight_init", "jax"}, {"num_classes", 0}}
                                 .dump();
      const Model model = create_model(name, options);
      const Tensor x = test::random_tensor({2, 3, 16, 16});
      nn::Pass pass;
      const Tensor y = model.net->forward(x, pass);
      const Tensor shifted = model.net->forward(ops::roll(x, 3, 4), pass);
      if (std::string_view(code) == "none") {
        expect_close(shifted, y, 1e-5, name);
      } else {
        EXPECT_GT(test::relative_error(shifted, y), 1e-4) << name << ", " << code;
      }
    }
  }
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
  expect_refused(vit, R"({"block_fn": "parallelblock"})", "'block_fn'");
  expect_refused(vit, R"({"attn_layer": "difference"})", "'attn_layer'");
  expect_refused(vit, R"({"attn_layer": "diff", "embed_dim": 9})", "whose width 3 is odd");
  expect_refused(vit, R"({"embed_norm_layer": "batchnorm"})", "'embed_norm_layer'");
  expect_refused("vit_small_patch16_18x2_224", R"({"pos_embed": "rel_bias"})", "no relative positions");
  const std::string shared = "vit_pwee_patch16_reg1_gap_256";
  expect_refused(shared, R"({"attn_layer": "diff"})", "'diffparallelscalingblock'");
  expect_refused(shared, R"({"scale_attn_norm": true})", "scale_attn_norm");
  expect_refused(shared, R"({"mlp_layer": "swiglu"})", "mlp_layer");
  expect_refused("vit_relpos_small_patch16_224", R"({"reg_tokens": 2})", "'reg_tokens'");
  expect_refused("deit_tiny_distilled_patch16_224", R"({"global_pool": "avg"})", "distilled");
}

TEST(VisionTransformer, SaysWhichImagesItTakes) {
  const Model fixed = load_model(golden_path("models/plain"));
  EXPECT_EQ(error_of_forward(fixed, {1, 3, 40, 32}), "the model takes images of 32x32 (img_size), not of 40x32");
  EXPECT_EQ(error_of_forward(fixed, {1, 1, 32, 32}), "the model takes images [B, 3, H, W], not [1, 1, 32, 32]");
  EXPECT_EQ(error_of_forward(fixed, {3, 32, 32}), "the model takes images [B, 3, H, W], not [3, 32, 32]");
  const Model dynamic = load_model(golden_path("models/dinov2"));
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 40, 16}), "no error");
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 41, 16}),
            "an image of 41x16 is not made of whole patches, as one is whose sides are multiples of 8 and 8; "
            "dynamic_img_pad would fill it up");
  expect_refused("vit_tiny_patch16_224", R"({"img_size": [32, 15]})", "holds no patch of patch_size 16x16");
}

}  // namespace
}  // namespace vitrail::models
