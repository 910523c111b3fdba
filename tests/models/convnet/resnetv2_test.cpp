#include "vitrail/models/convnet/resnetv2.h"

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::models {
namespace {

INSTANTIATE_TEST_SUITE_P(ResNetV2, TimmVariant,
                         testing::Values("resnetv2", "resnetv2_basic", "resnetv2_tiered", "resnetv2_bit"),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(VitHybrid, TimmVariant,
                         testing::Values("hybrid_stem", "hybrid", "hybrid_even", "hybrid_resnetd", "hybrid_conv_stem"),
                         variant_name);

TEST(ResNetV2, TakesImagesOfEverySize) {
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
  expect_refused("vit_tiny_r_s16_p8_224", R"({"backbone_layer": [1]})", "did you mean 'backbone_layers'");
  expect_refused("vit_tiny_r_s16_p8_224", R"({"backbone": "vgg"})", "'backbone'");
  expect_refused("vit_base_resnet26d_224", R"({"backbone_layers": []})", "'backbone_layers'");
  expect_refused("vit_base_mci_224", R"({"backbone_layers": [1]})", "'backbone_layers'");
  expect_refused("vit_base_mci_224", R"({"patch_size": 2})", "patch_size must be 1, not 2x2");
  expect_refused("vit_base_mci_224", R"({"embed_dim": 54, "num_heads": 2})", "4 divides, not 54");
}

// The stages in front of the blocks are those of a ResNet with the same weights.
TEST(VitHybrid, GivesARecorderItsResNetsStages) {
  for (const char* name : {"hybrid", "hybrid_even"}) {
    const Model model = load_model(test::golden_path("models") / name);
    const VitConfig config = body_of<VisionTransformer>(*model.net)->config();
    const Tensor x = test::golden(std::string("models/") + name + "/expected.safetensors").get("x");
    nn::Recorder of_model(true, false);
    nn::Pass pass{.recorder = &of_model};
    model.net->forward(x, pass);
    ASSERT_EQ(of_model.stem_features().size(), 2U) << name;
    EXPECT_EQ(of_model.features().size(), 2U) << name;  // the blocks' alone

    nn::ParameterStore store;
    const ResNetV2Body body(nn::Scope(store), std::get<ResNetV2Config>(*config.backbone));
    for (const nn::Parameter& parameter : store.all()) {
      parameter.value.copy_from(model.net->parameters.at("patch_embed.backbone." + parameter.name).value);
      parameter.value.touch();
    }
    nn::Recorder of_stages(true, false);
    pass.recorder = &of_stages;
    body(x, pass, false);
    EXPECT_TRUE(of_stages.stem_features().empty());
    for (const char* stage : {"stages.0", "stages.1"}) {
      test::expect_close(of_model.stem_features().at(std::string("patch_embed.backbone.") + stage).value,
                         of_stages.features().at(stage).value, 0, name);
    }
  }
  // Rows and columns of 30 x 37 pixels, halved in the stem twice and then from stage to stage.
  const Model model = load_model(test::golden_path("models/hybrid"));
  nn::Recorder recorder(true, false);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(test::random_tensor({1, 3, 30, 37}), pass);
  EXPECT_EQ(recorder.stem_features()[0].value.shape(), (Shape{1, 128, 8, 10}));
  EXPECT_EQ(recorder.stem_features()[1].value.shape(), (Shape{1, 128, 4, 5}));
  // Without stages there is nothing to record in front of the blocks.
  const Model bare = load_model(test::golden_path("models/hybrid_stem"));
  nn::Recorder none(true, false);
  pass.recorder = &none;
  bare.net->forward(test::random_tensor({1, 3, 30, 30}), pass);
  EXPECT_TRUE(none.stem_features().empty());
}

TEST(VitHybrid, SaysWhichImagesItTakes) {
  const Model fixed = load_model(test::golden_path("models/hybrid"));
  EXPECT_EQ(error_of_forward(fixed, {1, 3, 32, 32}), "the model takes images of 30x37 (img_size), not of 32x32");
  const Model dynamic = create_model(
      "vit_tiny_r_s16_p8_224", with(R"({"img_size": 32, "patch_size": 2, "embed_dim": 24, "depth": 1, "num_heads": 3,
                                        "num_classes": 5, "backbone_stem_chs": 32, "dynamic_img_size": true})"));
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 40, 24}), "no error");
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 33, 32}),
            "an image of 33x32 is not made of whole patches, as one is whose sides are multiples of 8 and 8");
  expect_refused("vit_small_r26_s32_224", R"({"patch_size": 8})",
                 "img_size 224x224 leaves no patch of patch_size 8x8 behind the backbone, as 256x256 would");
  EXPECT_NO_THROW(describe_model("vit_small_r26_s32_224", with(R"({"patch_size": 8, "img_size": 256})")));
}

TEST(VitHybrid, LoadsForAnotherImageSizeAsTimm) {
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
