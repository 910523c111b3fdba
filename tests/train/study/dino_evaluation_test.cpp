// Features judged as DINO's code judges them (tools/golden/dino_evaluation.py).
#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/train/study/knn.h"
#include "vitrail/train/study/layer_features.h"
#include "vitrail/train/study/linear_classifier.h"

namespace vitrail::train {
namespace {

using test::error_of;
using test::expect_close;
using ::testing::HasSubstr;

const io::Safetensors& dino_file() {
  static const io::Safetensors file = test::golden("dino_evaluation.safetensors");
  return file;
}

Features dino_features(const std::string& prefix) {
  Features features;
  features.x = dino_file().get(prefix + "x");
  features.labels = dino_file().get(prefix + "labels");
  return features;
}

TEST(EvalKnn, GivesDinosFigures) {
  KnnOptions options;
  options.k = {10, 20, 100, 200};
  for (const KnnResult& result : knn(dino_features(""), dino_features("test_"), options)) {
    const std::vector<float> expected = dino_file().get("k" + std::to_string(result.k)).values();
    EXPECT_NEAR(result.top1, expected[0], 1e-4) << result.k;
    EXPECT_NEAR(result.top5, expected[1], 1e-4) << result.k;
  }
}

TEST(EvalLinear, GivesDinosClassifiers) {
  LinearClassifierOptions options;
  options.lr = {0.05, 2.0};
  options.epochs = 4;
  options.batch_size = 32;
  options.shuffle = false;
  options.first_weight = dino_file().get("linear.weight");
  options.first_bias = dino_file().get("linear.bias");
  const auto results = train_linear_classifiers(dino_features(""), dino_features("test_"), options);
  ASSERT_EQ(results.size(), 2U);
  for (const LinearClassifierResult& result : results) {
    const std::string key = result.lr < 1 ? "linear.0.05" : "linear.2.0";
    expect_close(result.weight, dino_file().get(key + ".weight"), 1e-5, key);
    expect_close(result.bias, dino_file().get(key + ".bias"), 1e-5, key);
    const std::vector<float> figures = dino_file().get(key + ".figures").values();
    EXPECT_NEAR(result.test.loss, figures[0], 1e-5) << key;
    EXPECT_NEAR(result.test.top1, figures[1], 1e-4) << key;
    EXPECT_NEAR(result.test.top5, figures[2], 1e-4) << key;
    EXPECT_NEAR(result.best_top1, figures[3], 1e-4) << key;
  }
}

TEST(EvalLinear, DrawsItsOrderByTheSeed) {
  LinearClassifierOptions options;
  options.lr = {0.1};
  options.epochs = 2;
  const auto weights = [&](std::uint64_t seed) {
    options.seed = seed;
    return train_linear_classifiers(dino_features(""), dino_features("test_"), options).front().weight.values();
  };
  EXPECT_EQ(weights(1), weights(1));
  EXPECT_NE(weights(1), weights(2));
}

TEST(EvalLinear, RefusesWhatCannotBeJudged) {
  const auto refusal = [](auto&& change) {
    Features test = dino_features("test_");
    LinearClassifierOptions options;
    change(test, options);
    return error_of([&] { train_linear_classifiers(dino_features(""), test, options); });
  };
  EXPECT_THAT(refusal([](auto& test, auto&) { test.x = test.x.narrow(1, 0, 8); }), HasSubstr("of width 16"));
  EXPECT_THAT(refusal([](auto& test, auto&) {
                test.x = test.x.clone();
                test.x.template data<float>()[35] = INFINITY;
                test.names.resize(200, "a.png");
              }),
              HasSubstr("image 2 ('a.png') hold NaN or infinity"));
  EXPECT_THAT(refusal([](auto&, auto& options) { options.lr = {}; }), HasSubstr("learning rates"));
}

TEST(LayerFeatures, AreDinosIntermediateLayers) {
  models::CreateOptions create;
  create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 12, "depth": 5, "num_heads": 2})";
  create.num_classes = 3;  // which play no part
  const models::Model model = models::create_model("vit_tiny_patch16_224", create);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!model.net->is_head(parameter.name)) {
      parameter.value.copy_from(dino_file().get("vit." + parameter.name));
      parameter.value.touch();
    }
  }
  const Tensor x = dino_file().get("vit_x");
  nn::Pass pass;
  expect_close(layer_features(model, {}, "last4")(x, pass), dino_file().get("last4"), 1e-4);
  expect_close(layer_features(model, 2, "")(x, pass), dino_file().get("layer2"), 1e-4);
  expect_close(layer_features(model, -3, "token")(x, pass), dino_file().get("layer2"), 1e-4);
  expect_close(layer_features(model, 2, "avg")(x, pass), dino_file().get("layer2.avg"), 1e-4);
  EXPECT_THAT(error_of([&] { layer_features(model, 5, "")(x, pass); }), HasSubstr("none of the 5 layers"));
  EXPECT_THAT(error_of([&] { layer_features(model, 2, "last4")(x, pass); }), HasSubstr("joins four layers"));
  EXPECT_THAT(error_of([&] { layer_features(model, 2, "max"); }), HasSubstr("not by 'max'"));
}

// Channels come out of stages whatever their maps look like.
TEST(LayerFeatures, AreMeansOfMaps) {
  nn::Pass pass;
  const Tensor x = test::random_tensor({2, 3, 64, 64});
  models::CreateOptions create;
  create.model_kwargs = R"({"channels": [8, 16, 24, 32], "layers": [1, 1, 1, 1]})";
  const models::Model resnet = models::create_model("resnet18", create);
  EXPECT_EQ(layer_features(resnet, 1, "")(x, pass).size(0), 2);
  const Tensor last = layer_features(resnet, -1, "avg")(x, pass);
  create.num_classes = 0;
  const models::Model pooled = models::create_model("resnet18", create);
  for (const nn::Parameter& parameter : pooled.net->parameters.all()) {
    parameter.value.copy_from(resnet.net->parameters.at(parameter.name).value.detach());
    parameter.value.touch();
  }
  expect_close(last, pooled.net->forward(x, pass), 1e-5);
  EXPECT_THAT(error_of([&] { layer_features(resnet, {}, "token"); }), HasSubstr("no class token"));
  models::CreateOptions small;
  small.model_kwargs = R"({"img_size": 64, "embed_dim": 24, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4})";
  const models::Model swin = models::create_model("swin_tiny_patch4_window7_224", small);
  EXPECT_EQ(layer_features(swin, 0, "")(x, pass).shape(), (Shape{2, 24}));
  EXPECT_EQ(layer_features(swin, 1, "")(x, pass).shape(), (Shape{2, 48}));
}

}  // namespace
}  // namespace vitrail::train
