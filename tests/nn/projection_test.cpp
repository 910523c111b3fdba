// Heads of methods without labels, against the references' (tools/golden/self_supervised.py).
#include "vitrail/nn/projection.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::nn {
namespace {

using test::expect_close;

// The value, the gradients and the running statistics of a head in training, which `make` makes at a scope.
template <class Make>
void expect_head(const std::string& name, Make make) {
  const io::Safetensors file = test::golden("self_supervised/losses.safetensors");
  ParameterStore store;
  const auto head = make(Scope(store));
  for (const Parameter& parameter : store.all()) {
    parameter.value.copy_from(file.get(name + ".start." + parameter.name));
    parameter.value.touch();
  }
  Tensor x = file.get(name + ".x").clone();
  autograd::require_grad(x);
  Pass pass{.training = true};
  autograd::Tape tape;
  const Tensor y = head(x, pass);
  expect_close(y, file.get(name + ".y"), 1e-5, name);
  tape.backward(ops::sum(y * file.get(name + ".w")));
  expect_close(autograd::grad(x), file.get(name + ".dx"), 1e-4, name + " input");
  for (const Parameter& parameter : store.all()) {
    const std::string gradient = name + ".grad." + parameter.name;
    const auto matters = [](const Tensor& expected) {  // unlike a bias in front of a batch norm
      return std::ranges::any_of(expected.values(), [](float value) { return std::abs(value) > 1e-9F; });
    };
    if (file.contains(gradient) && matters(file.get(gradient))) {
      expect_close(autograd::grad(parameter.value), file.get(gradient), 1e-4, gradient);
    }
    if (file.contains(name + ".after." + parameter.name)) {
      expect_close(parameter.value, file.get(name + ".after." + parameter.name), 1e-5, parameter.name);
    }
  }
}

TEST(Projector, IsMocosProjectorAndPredictor) {
  expect_head("projector", [](const Scope& scope) {
    return Projector(scope, {.in = 10, .hidden = 8, .out = 5, .layers = 3, .last_norm = LastNorm::plain});
  });
  expect_head("predictor", [](const Scope& scope) {
    return Projector(scope, {.in = 10, .hidden = 8, .out = 5, .layers = 2, .last_norm = LastNorm::none});
  });
}

TEST(Projector, IsSimclrsHead) {
  expect_head("simclr_head", [](const Scope& scope) { return Projector(scope, {.in = 10, .hidden = 8, .out = 5}); });
}

TEST(DinoHead, IsDinos) {
  DinoHeadConfig config = {.in_dim = 10, .out_dim = 9, .hidden_dim = 8, .bottleneck_dim = 6};
  expect_head("dino_head", [&](const Scope& scope) { return DinoHead(scope, config); });
  config.use_bn = true;
  config.norm_last_layer = false;
  expect_head("dino_head_bn", [&](const Scope& scope) { return DinoHead(scope, config); });
}

TEST(DinoHead, AFrozenLastLayerGetsNoGradient) {
  ParameterStore store;
  const DinoHead head(Scope(store), {.in_dim = 10, .out_dim = 9, .hidden_dim = 8, .bottleneck_dim = 6});
  Pass pass{.training = true};
  autograd::Tape tape;
  tape.backward(ops::sum(head(test::random_tensor({4, 10}), pass, true)));
  EXPECT_FALSE(autograd::grad(store.at("last_layer.weight_v").value).defined());
  EXPECT_FALSE(autograd::grad(store.at("last_layer.weight_g").value).defined());
  EXPECT_TRUE(autograd::grad(store.at("mlp.0.weight").value).defined());
}

TEST(DinoHead, BeginsAsItsReference) {
  ParameterStore store;
  const DinoHead head(Scope(store), {.in_dim = 64, .out_dim = 90});
  const auto size = [&](const char* name) {
    const std::vector<float> values = store.at(name).value.values();
    double squares = 0;
    for (const float value : values) {
      squares += static_cast<double>(value * value);
    }
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(size("mlp.0.weight"), 0.02, 0.001);
  EXPECT_EQ(size("mlp.2.bias"), 0);
  EXPECT_EQ(size("last_layer.weight_g"), 1);
  EXPECT_NEAR(size("last_layer.weight_v"), 1 / std::sqrt(3 * 256.0), 0.002);
  EXPECT_EQ(store.at("mlp.4.weight").value.shape().str(), Shape({256, 2048}).str());
}

}  // namespace
}  // namespace vitrail::nn
