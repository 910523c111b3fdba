#include "vitrail/models/convnet/botnet.h"

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

INSTANTIATE_TEST_SUITE_P(BotNet, TimmVariant, testing::Values("botnet", "botnet_wide"), variant_name);

TEST(BotNet, SaysWhichImagesItTakes) {
  const Model model = load_model(test::golden_path("models/botnet"));
  EXPECT_EQ(error_of_forward(model, {1, 3, 32, 64}), "the model takes images of 64x64 (img_size), not of 32x64");
  EXPECT_EQ(error_of_forward(model, {1, 1, 64, 64}), "the model takes images [B, 3, H, W], not [1, 1, 64, 64]");
  expect_refused("botnet26t_256", R"({"img_size": 48})", "img_size must be a multiple of 32, not 48x48");
  CreateOptions options;
  for (const char* kwargs :
       {R"({"width_factor": 0.02})", R"({"width": 2})", R"({"img_size": 1048576})", R"({"global_pool": ""})"}) {
    options.model_kwargs = kwargs;
    EXPECT_THROW(describe_model("botnet26t_256", options), Error) << kwargs;
  }
}

TEST(BotNet, SaysWhereItsMapsLie) {
  const Model model = load_model(test::golden_path("models/botnet_wide"));
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model.net->forward(test::random_tensor({1, 1, 32, 96}), pass);
  ASSERT_EQ(recorder.attention().size(), 3U);
  EXPECT_EQ(recorder.attention().at("stages.2.1.self_attn").grid->queries, (nn::Size2{2, 6}));
  EXPECT_EQ(recorder.attention().at("stages.3.1.self_attn").grid->keys, (nn::Size2{1, 3}));
}

}  // namespace
}  // namespace vitrail::models
