#include "vitrail/models/mvit/mvit.h"

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(Mvit, TimmVariant,
                         testing::Values("mvit", "mvit_mlp", "mvit_cls", "mvit_odd", "mvit_max", "mvit_avg"),
                         variant_name);

TEST(MultiscaleVit, LoadsForAnotherImageSizeAsTimm) {
  const io::Safetensors expected = golden("models/mvit_adapted.safetensors");
  expect_adapted(expected, "larger", "mvit", R"({"img_size": 48})");
  expect_adapted(expected, "grayscale", "mvit", R"({"in_chans": 1})");
}

TEST(MultiscaleVit, SaysWhereQueriesAndKeysLie) {
  const Model model = load_model(golden_path("models/mvit_cls"));
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(test::random_tensor({1, 1, 32, 32}), pass);
  ASSERT_FALSE(recorder.attention().empty());
  for (const auto& [name, map, grid] : recorder.attention()) {
    const nn::TokenGrid& place = *grid;
    EXPECT_EQ(place.prefix, 1);
    EXPECT_EQ(map.size(2), 1 + place.queries[0] * place.queries[1]);
    EXPECT_EQ(map.size(3), 1 + place.keys[0] * place.keys[1]);
  }
  EXPECT_EQ(recorder.attention().at("stages.0.blocks.0.attn").grid->queries, (nn::Size2{8, 8}));
  EXPECT_EQ(recorder.attention().at("stages.0.blocks.0.attn").grid->keys, (nn::Size2{2, 2}));
}

TEST(MultiscaleVit, DropsTheSameInBothRunsOfACheckpointedBlock) {
  const Model model = load_model(golden_path("models/mvit"), with(R"({"drop_path_rate": 0.5, "drop_rate": 0.1})"));
  expect_repeatable_training(model, test::random_tensor({4, 3, 32, 32}), "stages.0.blocks.0.attn.qkv.weight");
}

TEST(MultiscaleVit, NamesTheArgumentThatIsWrong) {
  expect_refused("mvitv2_tiny", R"({"depth": 3})", "did you mean 'depths'");
  expect_refused("mvitv2_tiny", R"({"depths": [1, 2]})", "depths names 2 stages");
  expect_refused("mvitv2_tiny", R"({"depths": []})", "'depths'");
  expect_refused("mvitv2_tiny", R"({"stride_q": [[1, 1], [2, 1], [2, 2], [2, 2]]})", "stride_q makes one of 28x56");
  expect_refused("mvitv2_tiny", R"({"num_heads": 5})", "5 heads");
  expect_refused("mvitv2_tiny", R"({"global_pool": "token"})", "use_cls_token");
  expect_refused("mvitv2_tiny", R"({"global_pool": "max"})", "'global_pool'");
  expect_refused("mvitv2_tiny", R"({"mode": "conv_unshared"})", "'mode'");
  expect_refused("mvitv2_tiny", R"({"stride_q": [[1, 1], 2, 2, 2]})", "'stride_q'");
  expect_refused("mvitv2_tiny", R"({"kernel_qkv": 2})", "kernel_qkv");
  expect_refused("mvitv2_tiny", R"({"drop_path_rate": 1.5})", "'drop_path_rate'");
  expect_refused("mvitv2_tiny", R"({"embed_dim": 1048576, "img_size": 1048576})", "FLOPs");
}

TEST(MultiscaleVit, SaysWhichImagesItTakes) {
  const Model model = load_model(golden_path("models/mvit"));
  EXPECT_EQ(error_of_forward(model, {1, 3, 48, 48}), "the model takes images of 32x32 (img_size), not of 48x48");
  EXPECT_EQ(error_of_forward(model, {1, 1, 32, 32}), "the model takes images [B, 3, H, W], not [1, 1, 32, 32]");
  EXPECT_FALSE(model.net->takes_any_size());
  const Model any = load_model(golden_path("models/mvit_max"));
  EXPECT_TRUE(any.net->takes_any_size());
  nn::Pass pass;
  EXPECT_EQ(any.net->forward(test::random_tensor({1, 3, 33, 50}), pass).shape(), (Shape{1, 32}));
  EXPECT_EQ(any.net->forward(test::random_tensor({1, 3, 3, 1}), pass).shape(), (Shape{1, 32}));
  EXPECT_EQ(error_of_forward(any, {1, 3, 2, 50}), "the model takes images from 3x1 pixels on, not of 2x50");
}

// What a message says can be had can be had.
TEST(MultiscaleVit, NamesAImageSizeThatItCanBeHadFor) {
  expect_refused("mvitv2_tiny", R"({"img_size": 200})", "a multiple of 32 can");
  expect_refused("mvitv2_tiny", R"({"img_size": [224, 192]})", "gives 56x48, but 224x224 a square one");
  expect_refused("mvitv2_tiny", R"({"img_size": [180, 224]})", "gives 45x56, but 192x192 a square one");
  expect_refused("mvitv2_tiny", R"({"img_size": 226, "use_abs_pos": true})", "patch_stride 4x4");
  for (const char* size : {"192", "224"}) {
    const std::string kwargs = std::string(R"({"use_abs_pos": true, "img_size": )") + size + "}";
    EXPECT_NO_THROW(describe_model("mvitv2_tiny", with(kwargs))) << size;
  }
}

}  // namespace
}  // namespace vitrail::models
