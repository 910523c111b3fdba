// Models made of models: bodies that share one store.
#include <gtest/gtest.h>

#include "tests/models/trials.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/features.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

VitConfig small_vit(std::int64_t width) {
  VitConfig config;
  config.img_size = {16, 16};
  config.patch_size = {8, 8};
  config.embed_dim = width;
  config.depth = 2;
  config.num_heads = 2;
  config.num_classes = 0;
  return config;
}

// Two towers and the layer that brings one's features to the other's width, as CLIP has them.
struct TwoTowers {
  explicit TwoTowers(const nn::StoreOptions& options = {})
      : store(options),
        vision(nn::Scope(store) / "vision_model", small_vit(24)),
        second(nn::Scope(store) / "second_model", small_vit(16)),
        projection(nn::Scope(store) / "visual_projection", 24, 16, false) {}

  // The product of the features of both: [B, 16].
  Tensor forward(const Tensor& x, nn::Pass& pass) const {
    return projection(vision.forward(x, pass)) * second.forward(x, pass);
  }

  nn::ParameterStore store;
  VisionTransformer vision;
  VisionTransformer second;
  nn::Linear projection;
};

Model alone(std::uint64_t seed = 0, std::int64_t num_classes = 0) {
  CreateOptions options = with(R"({"img_size": 16, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2})");
  options.num_classes = num_classes;
  options.seed = seed;
  return create_model("vit_tiny_patch16_224", options);
}

Tensor images() { return test::random_tensor({2, 3, 16, 16}); }

TEST(TwoTowers, StartTheirPartsByTheirOwnRules) {
  const TwoTowers towers;
  const nn::ParameterStore& store = towers.store;
  // A ViT's biases start at 0 and its patch embedding as torch's, in the store of another model too, whose own layer
  // asks no ViT.
  EXPECT_EQ(store.at("vision_model.blocks.0.attn.qkv.bias").init.kind, nn::Init::Kind::zeros);
  EXPECT_EQ(store.at("vision_model.blocks.0.attn.qkv.weight").init.kind, nn::Init::Kind::trunc_normal);
  EXPECT_EQ(store.at("vision_model.patch_embed.proj.weight").init.kind, nn::Init::Kind::uniform);
  EXPECT_EQ(store.at("visual_projection.weight").init.kind, nn::Init::Kind::uniform);
  EXPECT_EQ(towers.vision.layer_of("blocks.1.norm1.weight"), 2);
}

TEST(TwoTowers, ComputeWhatTheirPartsComputeAlone) {
  const Model model = alone(3);
  const TwoTowers towers;
  const test::TemporaryFolder folder;
  save_model(model, folder / "alone");
  load_weights(weights_of(towers.vision, towers.store, "vision_model"), folder / "alone");
  const Tensor x = images();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    nn::Pass pass{.dtype = dtype};
    test::expect_close(towers.vision.forward(x, pass), model.net->forward(x, pass), 0);
    test::expect_close(towers.vision.forward_features(x, pass), model.net->forward_features(x, pass), 0);
  }
}

TEST(TwoTowers, GiveEveryPartItsGradient) {
  const TwoTowers towers;
  nn::Pass pass{.training = true};
  autograd::Tape tape;
  const Tensor y = towers.forward(images(), pass);
  ASSERT_EQ(y.shape(), (Shape{2, 16}));
  tape.backward(y, test::random_tensor(y.shape(), 5));
  for (const nn::Parameter& parameter : towers.store.all()) {
    ASSERT_TRUE(autograd::grad(parameter.value).defined()) << parameter.name;
  }
  // A part's gradient is that of the part alone, for the gradient that reaches it.
  const Model model = alone();
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(towers.store.at("vision_model." + parameter.name).value.detach());
    parameter.value.touch();
  }
  autograd::Tape own;
  nn::Pass again{.training = true};
  const Tensor features = model.net->forward(images(), again);
  own.backward(towers.projection(features) * towers.second.forward(images(), again).detach(),
               test::random_tensor(y.shape(), 5));
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    test::expect_close(autograd::grad(parameter.value),
                       autograd::grad(towers.store.at("vision_model." + parameter.name).value), 0, parameter.name);
  }
}

TEST(TwoTowers, AreSavedWholeAndByTheirParts) {
  const TwoTowers towers({.seed = 5});
  const test::TemporaryFolder folder;
  io::save_safetensors(folder / "all.safetensors", named_tensors(towers.store));
  io::save_safetensors(folder / "vision.safetensors", named_tensors(towers.store, "vision_model."));
  // All of it, part by part: each takes what lies below its name.
  const io::Safetensors all = io::Safetensors::open(folder / "all.safetensors");
  EXPECT_EQ(all.names().size(), towers.store.all().size());
  EXPECT_TRUE(all.contains("second_model.cls_token"));
  // One part of it as a model that stands alone.
  const Model model = alone(1);
  load_weights(weights_of(*model.net, model.net->parameters), io::Safetensors::open(folder / "vision.safetensors"), {},
               {16, 16});
  nn::Pass pass;
  test::expect_close(model.net->forward(images(), pass), towers.vision.forward(images(), pass), 0);
  // And back, into another pair.
  const TwoTowers other({.seed = 6});
  load_weights(weights_of(other.vision, other.store, "vision_model"),
               io::Safetensors::open(folder / "vision.safetensors"), {}, {16, 16});
  test::expect_close(other.vision.forward(images(), pass), towers.vision.forward(images(), pass), 0);
  EXPECT_GT(test::relative_error(other.second.forward(images(), pass), towers.second.forward(images(), pass)), 0.1);
}

TEST(TwoTowers, SayWhatDoesNotFit) {
  const TwoTowers towers;
  const test::TemporaryFolder folder;
  save_model(alone(0, 3), folder / "classifier");
  const WeightsTarget vision = weights_of(towers.vision, towers.store, "vision_model");
  EXPECT_NE(test::error_of([&] { load_weights(vision, folder / "classifier"); }).find("no parameter 'head.weight'"),
            std::string::npos);
  load_weights(vision, folder / "classifier", true);  // the classifier stays there
  const WeightsTarget second = weights_of(towers.second, towers.store, "second_model");
  EXPECT_NE(
      test::error_of([&] { load_weights(second, folder / "classifier", true); }).find("'cls_token' has the shape"),
      std::string::npos);
}

TEST(ResetClassifier, GivesANewHeadAndKeepsTheRest) {
  Model model = alone(7, 5);
  const Tensor x = images();
  nn::Pass pass;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Tensor noise = test::random_tensor(parameter.value.shape(), hash(parameter.name));
    parameter.value.copy_from(noise * 0.1F);
    parameter.value.touch();
  }
  const Tensor features = model.net->forward_head(model.net->forward_features(x, pass), pass, true);
  model.pretrained.label_names = {"a", "b", "c", "d", "e"};
  reset_classifier(model, 3);
  EXPECT_EQ(model.net->num_classes(), 3);
  EXPECT_TRUE(model.pretrained.label_names.empty());
  EXPECT_EQ(model.net->forward(x, pass).shape(), (Shape{2, 3}));
  test::expect_close(model.net->forward_head(model.net->forward_features(x, pass), pass, true), features, 0);
  // The head starts as a new model's.
  test::expect_close(model.net->parameters.at("head.weight").value, alone(7, 3).net->parameters.at("head.weight").value,
                     0);
  reset_classifier(model, 0, "avg");
  EXPECT_EQ(model.net->parameters.find("head.weight"), nullptr);
  EXPECT_NE(model.net->parameters.find("norm.weight"), nullptr);  // stays in front of the pooling
  EXPECT_EQ(model.net->forward(x, pass).shape(), (Shape{2, 24}));
  EXPECT_THROW(reset_classifier(model, 3, "map"), Error);
  EXPECT_EQ(model.net->num_classes(), 0);
}

}  // namespace
}  // namespace vitrail::models
