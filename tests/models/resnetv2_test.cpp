#include "vitrail/models/resnetv2.h"

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

INSTANTIATE_TEST_SUITE_P(ResNetV2, TimmVariant,
                         testing::Values("resnetv2", "resnetv2_basic", "resnetv2_tiered", "resnetv2_bit"),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(VitHybrid, TimmVariant, testing::Values("hybrid_stem", "hybrid", "hybrid_even"), variant_name);

TEST(ResNetV2, TakesPicturesOfEverySize) {
  for (const char* name : {"resnetv2", "resnetv2_bit"}) {
    const Model model = load_model(test::golden_path("models") / name);
    nn::Pass pass;
    for (const std::int64_t side : {1, 2, 31, 64}) {
      EXPECT_EQ(model.net->forward(test::random_tensor({1, 3, side, 5}), pass).shape(), (Shape{1, 7})) << name;
    }
    EXPECT_THROW(model.net->forward(test::random_tensor({1, 1, 32, 32}), pass), Error);
  }
}

TEST(ResNetV2, NamesTheArgumentThatIsWrong) {
  expect_refused("resnetv2_50", R"({"layers": []})", "layers");
  expect_refused("resnetv2_50", R"({"layers": [1, 1, 1, 1, 1]})", "channels");
  expect_refused("resnetv2_50", R"({"norm_layer": "evonorm"})", "'norm_layer'");
  expect_refused("resnetv2_50", R"({"conv_layer": ["create_conv2d", 1e-6]})", "'conv_layer'");
  expect_refused("resnetv2_50", R"({"stem_type": "wide"})", "'stem_type'");
  expect_refused("resnetv2_50", R"({"preact": false, "basic": true})", "preact");
  expect_refused("resnetv2_50x1_bit", R"({"channels": [24, 32, 32, 32]})", "groups");
  expect_refused("vit_small_r26_s32_224", R"({"dynamic_img_pad": true})", "hybrid");
  expect_refused("vit_small_r26_s32_224", R"({"patch_size": 8})", "no patch");
  expect_refused("vit_tiny_r_s16_p8_224", R"({"backbone_layer": [1]})", "did you mean 'backbone_layers'");
}

TEST(VitHybrid, LoadsForAnotherPictureSizeAsTimm) {
  const io::Safetensors expected = test::golden("models/hybrid_adapted.safetensors");
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 48})";
  const Model model = load_model(test::golden_path("models/hybrid"), options);
  nn::Pass pass;
  test::expect_close(model.net->forward(expected.get("x"), pass), expected.get("logits"), 1e-4);
  options.model_kwargs = R"({"in_chans": 1})";
  const Model gray = load_model(test::golden_path("models/hybrid"), options);
  EXPECT_EQ(gray.net->forward(test::random_tensor({1, 1, 30, 37}), pass).shape(), (Shape{1, 7}));
}

}  // namespace
}  // namespace vitrail::models
