#include "vitrail/models/swin/swin.h"

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(Swin, TimmVariant,
                         testing::Values("swin", "swin_padded", "swin_partition", "swin_features", "swinv2",
                                         "swinv2_padded", "swinv2_cr", "swinv2_cr_padded", "swinv2_cr_features"),
                         variant_name);

TEST(SwinTransformer, LoadsForAnotherImageSizeAndWindowAsTimm) {
  const io::Safetensors expected = golden("models/swin_adapted.safetensors");
  expect_adapted(expected, "swin_larger", "swin", R"({"img_size": [48, 40]})");
  expect_adapted(expected, "swin_smaller", "swin", R"({"img_size": 16})");
  expect_adapted(expected, "swin_windows", "swin", R"({"window_size": [6, 5]})");
  expect_adapted(expected, "swin_grayscale", "swin", R"({"in_chans": 1})");
  expect_adapted(expected, "swinv2_windows", "swinv2",
                 R"({"img_size": [24, 48], "window_size": 6, "pretrained_window_sizes": [4, 4]})");
  expect_adapted(expected, "swinv2_cr_larger", "swinv2_cr", R"({"img_size": 40})");
}

// A recorder's maps say for every token of the grid where it looks, also where windows were shifted and filled up.
TEST(SwinTransformer, TellsWhereItsWindowsLie) {
  const Model model = load_model(golden_path("models/swin_padded"));
  const Tensor x = golden("models/swin_padded/expected.safetensors").get("x");
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(x, pass);
  ASSERT_EQ(recorder.attention().size(), 4U);
  const nn::TokenGrid plain = *recorder.attention().at("layers.0.blocks.0.attn").grid;
  EXPECT_EQ(plain.queries, (nn::Size2{9, 11}));
  EXPECT_EQ(plain.keys, plain.queries);
  EXPECT_EQ(plain.window, (nn::Size2{4, 3}));
  EXPECT_EQ(plain.shift, (nn::Size2{0, 0}));
  EXPECT_EQ(recorder.attention()[1].grid->shift, (nn::Size2{2, 1}));
  // Merged to 5 x 6: the window is as wide as the grid, so it is shifted by rows alone.
  const nn::TokenGrid merged = *recorder.attention().at("layers.1.blocks.1.attn").grid;
  EXPECT_EQ(merged.queries, (nn::Size2{5, 6}));
  EXPECT_EQ(merged.window, (nn::Size2{2, 6}));
  EXPECT_EQ(merged.shift, (nn::Size2{1, 0}));
  EXPECT_EQ(recorder.attention()[3].value.size(0), 2 * 3);
}

// A grid that is smaller than what its windows are shifted by: it is rolled more than once.
TEST(SwinTransformer, TellsOfWindowsOnAGridSmallerThanTheirShift) {
  const Model model = load_model(golden_path("models/swin_partition"));
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(test::random_tensor({1, 3, 2, 34}), pass);
  ASSERT_EQ(recorder.attention().size(), 4U);
  for (const nn::Recorded& map : recorder.attention()) {
    EXPECT_LT(map.grid->shift[0], map.grid->queries[0]);
    EXPECT_LT(map.grid->shift[1], map.grid->queries[1]);
  }
  EXPECT_EQ(recorder.attention()[1].grid->shift, (nn::Size2{0, 2}));
}

TEST(SwinTransformer, RepeatsItsTrainingPassFromTheSameRandomStream) {
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 32, "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3], "window_size": 3,
                             "drop_rate": 0.1, "proj_drop_rate": 0.1, "attn_drop_rate": 0.1, "drop_path_rate": 0.2})";
  const Model model = create_model("swin_tiny_patch4_window7_224", options);
  expect_repeatable_training(model, test::random_tensor({4, 3, 32, 32}), "layers.0.blocks.0.attn.qkv.weight");
}

// Scores grow no further than 100 times the cosine (Liu et al. 2022, section 3.3).
TEST(SwinTransformer, BoundsTheScaleOfV2sScores) {
  const Model model = load_model(golden_path("models/swinv2"));
  const Tensor x = golden("models/swinv2/expected.safetensors").get("x");
  const auto logits = [&](float log_scale) {
    Tensor scale = model.net->parameters.at("layers.0.blocks.1.attn.logit_scale").value;
    scale.fill(log_scale);
    scale.touch();
    nn::Pass pass;
    return model.net->forward(x, pass);
  };
  expect_close(logits(7), logits(std::log(100.0F)), 1e-5);
  EXPECT_GT(test::relative_error(logits(4), logits(7)), 1e-3);
}

// What V2-CR drops of its positions' network in training is drawn anew for each pass.
TEST(SwinTransformer, DropsPartsOfV2CrsPositionsInTraining) {
  const Model model = load_model(golden_path("models/swinv2_cr"));
  const Tensor x = golden("models/swinv2_cr/expected.safetensors").get("x");
  const auto logits = [&](bool training, std::uint64_t seed) {
    nn::Pass pass{.training = training, .random = RandomStream(seed)};
    return model.net->forward(x, pass);
  };
  expect_close(logits(true, 1), logits(true, 1), 0);
  EXPECT_GT(test::relative_error(logits(true, 1), logits(true, 2)), 1e-4);
  expect_close(logits(false, 1), logits(false, 2), 0);
}

// The linear maps of windows' attention run in int8 as others do, those with V2's biases of queries and values too.
TEST(SwinTransformer, AnswersAlikeInInt8) {
  for (const char* name : {"swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256", "swinv2_cr_tiny_ns_224"}) {
    CreateOptions options;
    options.model_kwargs = R"({"img_size": 32, "embed_dim": 24, "depths": [2, 1], "num_heads": [3, 6],
                               "window_size": 3})";
    options.num_classes = 5;
    const Model model = create_model(name, options);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      if (parameter.name.ends_with("norm1.weight") || parameter.name.ends_with("norm2.weight")) {
        Tensor weight = parameter.value;  // V2's start at 0
        weight.fill(1);
        weight.touch();
      }
    }
    const Model small = quantize(model);
    const std::string stages = std::string(name).find("_cr_") == std::string::npos ? "layers" : "stages";
    EXPECT_EQ(small.net->parameters.at(stages + ".0.blocks.1.attn.qkv.weight").value.dtype(), DType::i8);
    const Tensor x = test::random_tensor({2, 3, 32, 32});
    nn::Pass pass;
    expect_close(small.net->forward(x, pass), model.net->forward(x, pass), 0.05, name);
  }
}

TEST(SwinTransformer, NamesTheArgumentThatIsWrong) {
  const std::string swin = "swin_tiny_patch4_window7_224";
  expect_refused(swin, R"({"depth": [2, 2]})", "did you mean 'depths'");
  expect_refused(swin, R"({"depths": [2, 2]})", "for the 2 stages of depths");
  expect_refused(swin, R"({"depths": []})", "between 1 and 16");
  expect_refused(swin, R"({"depths": 2})", "'depths'");
  expect_refused(swin, R"({"num_heads": [3, 6, 12, 23]})", "num_heads 23");
  expect_refused(swin, R"({"window_size": [7, 7, 7]})", "are for 4, 4, 3 and 4");
  expect_refused(swin, R"({"window_size": [[7, 7], [7, 7, 7], 7, 7]})", "'window_size'");
  expect_refused(swin, R"({"window_size": 0})", "'window_size'");
  expect_refused(swin, R"({"window_size": "seven"})", "'window_size'");
  expect_refused(swin, R"({"img_size": 3})", "img_size 3x3");
  expect_refused(swin, R"({"img_size": 1048576, "window_size": 1048576})", "pairs of tokens");
  expect_refused(swin, R"({"window_size": 1048576, "always_partition": true})", "pairs of tokens");
  expect_refused(swin, R"({"img_size": 1048576, "embed_dim": 98304})", "FLOPs");
  expect_refused(swin, R"({"depths": [2, 2, 4093, 2]})", "4096");
  expect_refused(swin, R"({"global_pool": "token"})", "'global_pool'");
  expect_refused(swin, R"({"global_pool": ""})", "num_classes must be 0");
  expect_refused(swin, R"({"drop_path_rate": 1.0})", "drop rate");
  expect_refused(swin, R"({"act_layer": "relu"})", "'act_layer'");
  expect_refused("swinv2_tiny_window8_256", R"({"head_dim": 8})", "'head_dim'");
  expect_refused("swinv2_tiny_window8_256", R"({"pretrained_window_sizes": [8]})", "for the 4 stages");
  expect_refused("swinv2_tiny_window8_256", R"({"mlp_ratio": [4, 4, 4, 4]})", "'mlp_ratio'");
  expect_refused("swinv2_cr_tiny_ns_224", R"({"window_ratio": 0})", "'window_ratio'");
  expect_refused("swinv2_cr_tiny_ns_224", R"({"window_ratio": [8, 8]})", "are for 4, 4, 2 and 4");
}

TEST(SwinTransformer, SaysWhichImagesItTakes) {
  const Model fixed = load_model(golden_path("models/swin"));
  EXPECT_FALSE(fixed.net->takes_any_size());
  EXPECT_EQ(error_of_forward(fixed, {1, 3, 40, 32}),
            "the model takes images of 32x32 (img_size), not of 40x32; with dynamic_img_size it would take any that "
            "are made of whole patches of 2x2");
  EXPECT_NE(error_of_forward(fixed, {1, 1, 32, 32}).find("[B, 3, H, W]"), std::string::npos);
  EXPECT_NE(error_of_forward(fixed, {3, 32, 32}).find("[B, 3, H, W]"), std::string::npos);
  // Whole patches are needed, whole windows (of 3 x 5 patches) are not.
  const Model dynamic = load_model(golden_path("models/swin_partition"));
  EXPECT_TRUE(dynamic.net->takes_any_size());
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 2, 34}), "no error");
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 14, 22}), "no error");
  EXPECT_EQ(error_of_forward(dynamic, {1, 3, 33, 34}),
            "an image of 33x34 is not made of whole patches: its sides must be multiples of 2 and 2");
  // V2-CR leaves out what is left over of an image.
  const Model cut = load_model(golden_path("models/swinv2_cr_padded"));
  EXPECT_EQ(error_of_forward(cut, {1, 1, 37, 46}), "no error");
  EXPECT_EQ(error_of_forward(cut, {1, 1, 3, 46}), "an image of 3x46 holds no patch of 4x4");
  expect_refused("swin_tiny_patch4_window7_224", R"({"img_size": [3, 32]})", "holds no patch of patch_size 4x4");
}

}  // namespace
}  // namespace vitrail::models
