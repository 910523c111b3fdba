#include "vitrail/models/mvit/mvit_video.h"

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

using test::golden_path;

// Fixtures of torchvision's, in the same form.
INSTANTIATE_TEST_SUITE_P(MvitVideo, TimmVariant, testing::Values("mvit_video_v1", "mvit_video_v2", "mvit_video_odd"),
                         variant_name);

TEST(VideoMultiscaleVit, SaysHowManyFramesItTakes) {
  const Model model = describe_model("mvit_v2_s");
  EXPECT_EQ(model.net->frames(), 16);
  EXPECT_EQ(input_shape(model), (Shape{3, 16, 224, 224}));
  EXPECT_EQ(model.pretrained.mean[0], 0.45);
  EXPECT_THROW(check_takes_images(model), Error);
  const Model images = describe_model("mvitv2_tiny");
  EXPECT_EQ(input_shape(images), (Shape{3, 224, 224}));
  EXPECT_NO_THROW(check_takes_images(images));
}

TEST(VideoMultiscaleVit, LaysItsAttentionMapsOnTheFramesRows) {
  const Model model = load_model(golden_path("models/mvit_video_v2"));
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(test::random_tensor({1, 3, 4, 32, 32}), pass);
  const nn::TokenGrid& place = *recorder.attention().at("blocks.1.attn").grid;
  EXPECT_EQ(place.prefix, 1);
  EXPECT_EQ(place.queries, (nn::Size2{2 * 4, 4}));
  EXPECT_EQ(place.keys, (nn::Size2{2 * 4, 4}));
  const TokenLayout layout = model.net->token_layout(32, 32);
  EXPECT_EQ(layout.rows, 2 * 8);
  EXPECT_EQ(layout.columns, 8);
  EXPECT_TRUE(layout.class_token);
}

TEST(VideoMultiscaleVit, TakesOtherChannelsAndClasses) {
  CreateOptions options;
  options.model_kwargs = R"({"in_chans": 1})";
  options.num_classes = 3;
  const Model model = load_model(golden_path("models/mvit_video_v1"), options);
  nn::Pass pass;
  EXPECT_EQ(model.net->forward(test::random_tensor({2, 1, 4, 32, 32}), pass).shape(), (Shape{2, 3}));
}

TEST(VideoMultiscaleVit, LearnsAndDropsTheSameInBothRunsOfACheckpointedBlock) {
  CreateOptions options;
  options.model_kwargs = R"({"drop_path_rate": 0.3, "proj_drop_rate": 0.1})";
  const Model model = load_model(golden_path("models/mvit_video_v2"), options);
  const Tensor x = test::random_tensor({4, 3, 4, 32, 32});
  const auto gradient = [&](std::uint64_t seed) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.training = true, .random = RandomStream(seed), .checkpoint = true};
    autograd::Tape tape;
    tape.backward(model.net->forward(x, pass), test::random_tensor({4, 7}, 5));
    return autograd::grad(model.net->parameters.at("blocks.0.attn.qkv.weight").value);
  };
  test::expect_close(gradient(1), gradient(1), 0);
  EXPECT_GT(test::relative_error(gradient(1), gradient(2)), 1e-2);
}

TEST(VideoMultiscaleVit, NamesTheArgumentThatIsWrong) {
  expect_refused("mvit_v1_b", R"({"temporal": 8})", "did you mean 'temporal_size'");
  expect_refused("mvit_v1_b", R"({"temporal_size": 7})",
                 "7 frames of 224x224 (temporal_size, img_size) cannot be divided by patch_embed_stride 2 x 4 x 4");
  expect_refused("mvit_v1_b", R"({"img_size": 30})", "16 frames of 30x30");
  expect_refused("mvit_v1_b", R"({"num_heads": [1]})", "'input_channels' has 16 values");
  expect_refused("mvit_v1_b",
                 R"({"num_heads": [], "input_channels": [], "output_channels": [], "kernel_q": [], "kernel_kv": [],
                     "stride_q": [], "stride_kv": []})",
                 "at least one block");
  expect_refused("mvit_v1_b", R"({"stride_q": [[1, 2]]})", "'stride_q'");
  expect_refused("mvit_v1_b", R"({"patch_embed_stride": [0, 4, 4]})", "'patch_embed_stride'");
  expect_refused("mvit_v1_b", R"({"patch_embed_padding": [1, -3, 3]})", "'patch_embed_padding'");
  expect_refused("mvit_v1_b", R"({"temporal_size": 1048576, "img_size": 1048576})", "FLOPs");
}

TEST(VideoMultiscaleVit, SaysWhichClipsItTakes) {
  const Model model = load_model(golden_path("models/mvit_video_v1"));
  for (const Shape& shape : {Shape{1, 3, 32, 32}, Shape{1, 3, 8, 32, 32}, Shape{1, 3, 4, 64, 32}}) {
    EXPECT_EQ(error_of_forward(model, shape),
              "the model takes clips [B, 3, 4, 32, 32] (in_chans, temporal_size, img_size), not " + shape.str());
  }
}

}  // namespace
}  // namespace vitrail::models
