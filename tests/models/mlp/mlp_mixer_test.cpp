#include "vitrail/models/mlp/mlp_mixer.h"

#include <gmock/gmock.h>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "tests/support/errors.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

using test::error_of;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(MlpMixer, TimmVariant,
                         testing::Values("mixer", "mixer_odd", "mixer_tokens", "mixer_features", "resmlp", "resmlp_odd",
                                         "gmlp", "gmlp_odd", "gmixer", "gmixer_odd"),
                         variant_name);

TEST(MlpMixer, SaysWhichImagesItTakes) {
  const Model model = load_model(test::golden_path("models/mixer"));
  nn::Pass pass;
  EXPECT_EQ(error_of([&] {
              model.net->forward(Tensor::zeros({1, 3, 40, 32}), pass);
            }),
            "the model mixes the 16 tokens of images of 32x32 (img_size), it cannot take 40x32");
  EXPECT_THROW(model.net->forward(Tensor::zeros({1, 1, 32, 32}), pass), Error);
  EXPECT_THROW(model.net->forward(Tensor::zeros({3, 32, 32}), pass), Error);
  EXPECT_THAT(error_of([] { load_model(test::golden_path("models/mixer"), with(R"({"img_size": 48})")); }),
              HasSubstr("mixes the tokens of images of 32x32: the model cannot be had for 48x48"));
}

TEST(MlpMixer, TakesOtherChannels) {
  const Model gray = load_model(test::golden_path("models/mixer"), with(R"({"in_chans": 1})"));
  const Model color = load_model(test::golden_path("models/mixer"));
  nn::Pass pass;
  const Tensor x = test::random_tensor({2, 1, 32, 32});
  const Tensor same = x.expand({2, 3, 32, 32}).clone();
  test::expect_close(gray.net->forward(x, pass), color.net->forward(same, pass), 1e-5);
}

TEST(MlpMixer, NamesTheArgumentThatIsWrong) {
  expect_refused("mixer_s16_224", R"({"depth": 2})", "'depth'");
  expect_refused("mixer_s16_224", R"({"num_block": 2})", "did you mean 'num_blocks'");
  expect_refused("mixer_s16_224", R"({"num_blocks": 0})", "'num_blocks'");
  expect_refused("mixer_s16_224", R"({"mlp_ratio": [1, 2, 3]})", "'mlp_ratio'");
  expect_refused("mixer_s16_224", R"({"mlp_ratio": 0.001})", "mlp_ratio 0.001");
  expect_refused("mixer_s16_224", R"({"block_layer": "block"})", "'block_layer'");
  expect_refused("mixer_s16_224", R"({"block_layer": ["mixerblock", 1]})", "'block_layer'");
  expect_refused("mixer_s16_224", R"({"global_pool": "max"})", "'global_pool'");
  expect_refused("mixer_s16_224", R"({"img_size": 8})", "img_size 8x8");
  expect_refused("gmixer_12_224", R"({"embed_dim": 9, "mlp_ratio": 1})", "even hidden width");
  expect_refused("gmlp_s16_224", R"({"mlp_layer": "mlp"})", "'gatedmlp'");
  expect_refused("mixer_l16_224", R"({"img_size": 1048576, "patch_size": 1, "embed_dim": 1048576})", "FLOPs");
}

// All rates at work, and the same numbers drawn when a block is run again.
TEST(MlpMixer, RepeatsItsTrainingPassFromTheSameRandomStream) {
  for (const char* name : {"mixer_s16_224", "resmlp_12_224", "gmlp_ti16_224", "gmixer_12_224"}) {
    const Model model =
        create_model(name, with(R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "num_blocks": 2, "num_classes": 7,
                       "drop_rate": 0.1, "proj_drop_rate": 0.1, "drop_path_rate": 0.2})"));
    model.net->parameters.at("head.weight").value.copy_from(test::random_tensor({7, 24}, 3));
    model.net->parameters.at("head.weight").value.touch();
    expect_repeatable_training(model, test::random_tensor({4, 3, 32, 32}), "stem.proj.weight");
  }
}

TEST(MlpMixer, RunsInInt8AlongTokensToo) {
  const Model model = create_model(
      "mixer_s16_224", with(R"({"img_size": 48, "patch_size": 8, "embed_dim": 64, "num_blocks": 2, "nlhb": true})"));
  const Model small = quantize(model, nullptr);
  EXPECT_EQ(small.net->parameters.at("blocks.0.mlp_tokens.fc1.weight").value.dtype(), DType::i8);
  const Tensor x = test::random_tensor({2, 3, 48, 48});
  nn::Recorder exact(true, false);
  nn::Recorder rounded(true, false);
  nn::Pass pass{.recorder = &exact};
  model.net->forward(x, pass);
  pass.recorder = &rounded;
  small.net->forward(x, pass);
  test::expect_close(rounded.features().at("blocks.1").value, exact.features().at("blocks.1").value, 3e-2);
}

}  // namespace
}  // namespace vitrail::models
