#include "vitrail/optim/optimizer.h"

#include <gmock/gmock.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"

namespace vitrail::test {
namespace {

using optim::ClipMode;
using optim::Optimizer;
using optim::OptimizerOptions;
using optim::ParameterGroup;

constexpr int steps = 20;

// A parameter's gradient becomes `value`.
void set_gradient(const Tensor& parameter, const Tensor& value) {
  autograd::zero_grad(parameter);
  autograd::Gradient(parameter).add(value.clone());
}

// The parameters of tools/golden/optim.py.
class Training {
 public:
  Training() : file(golden("optim.safetensors")) {
    for (const auto& [name, group] : groups_by_name()) {
      const Tensor start = file.get("start." + name);
      store.add(name, start.shape(), nn::Init::zeros()).copy_from(start);
    }
  }

  static std::vector<std::pair<std::string, ParameterGroup>> groups_by_name() {
    return {{"proj.weight", {{"proj.weight"}, 0.05, 1}},
            {"proj.bias", {{"proj.bias"}, 0, 1}},
            {"head.weight", {{"head.weight"}, 0.3, 0.25}},
            {"late", {{"late"}, 0.05, 1}}};
  }
  static std::vector<ParameterGroup> groups() {
    std::vector<ParameterGroup> result;
    for (const auto& [name, group] : groups_by_name()) {
      result.push_back(group);
    }
    return result;
  }

  // Makes step number `step`: gradients halved, as if two batches had been added up.
  void advance(Optimizer& optimizer, int step, double lr = 0.01) const {
    store.zero_grad();
    for (const nn::Parameter& parameter : store.all()) {
      if (parameter.name != "late" || step >= 4) {
        set_gradient(parameter.value, file.get("gradients." + parameter.name).select(0, step));
      }
    }
    optimizer.step(lr * (1 + 0.1 * step), 0.5);
  }

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> result;
    for (const nn::Parameter& parameter : store.all()) {
      result.push_back(parameter.value.values());
    }
    return result;
  }

  io::Safetensors file;
  nn::ParameterStore store;
};

OptimizerOptions options_of(const std::string& name) {
  OptimizerOptions options;
  options.opt = name == "plain" ? "momentum" : name.substr(0, name.find('_'));
  if (name == "adamw") {
    options.eps = 1e-6;
    options.betas = std::array{0.8, 0.95};
  } else if (name == "sgd" || name == "larc") {
    options.momentum = 0.8;
  } else if (name == "plain" || name == "lars_plain") {
    options.momentum = 0;
  } else if (name == "nadamw") {
    options.betas = std::array{0.85, 0.95};
  } else if (name == "lion_betas") {
    options.betas = std::array{0.95, 0.98};
  } else if (name == "lamb_unclipped") {
    options.max_grad_norm = 0;
    options.eps = 1e-5;
  } else if (name == "lambc") {
    options.betas = std::array{0.8, 0.95};
  }
  return options;
}

// RATES of tools/golden/optim.py.
double rate_of(const std::string& name) {
  return name.find("lars") != std::string::npos ? 10 : name.find("larc") != std::string::npos ? 0.002 : 0.01;
}

class Optimizers : public testing::TestWithParam<const char*> {};

TEST_P(Optimizers, AgreeWithPyTorchOverTwentySteps) {
  Training training;
  Optimizer optimizer(training.store, options_of(GetParam()), Training::groups());
  for (int step = 0; step < steps; ++step) {
    training.advance(optimizer, step, rate_of(GetParam()));
    if (step == 0 || step == steps - 1) {
      for (const nn::Parameter& parameter : training.store.all()) {
        const std::string name = std::string(GetParam()) + "." + std::to_string(step) + "." + parameter.name;
        expect_close(parameter.value, training.file.get(name), 3e-6, name);
      }
    }
  }
}

TEST_P(Optimizers, GoOnToTheSameBitsFromTheirState) {
  Training whole;
  Optimizer never_stopped(whole.store, options_of(GetParam()), Training::groups());
  Training first;
  Optimizer stopped(first.store, options_of(GetParam()), Training::groups());
  for (int step = 0; step < 7; ++step) {
    whole.advance(never_stopped, step);
    first.advance(stopped, step);
  }
  Training second;
  for (std::size_t i = 0; i < 4; ++i) {
    second.store.all()[i].value.copy_from(first.store.all()[i].value);
  }
  Optimizer resumed(second.store, options_of(GetParam()), Training::groups());
  resumed.load_state(stopped.state());
  for (int step = 7; step < steps; ++step) {
    whole.advance(never_stopped, step);
    second.advance(resumed, step);
  }
  EXPECT_EQ(whole.values(), second.values());
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers,
                         testing::Values("adamw", "adam", "sgd", "momentum", "plain", "nadamw", "lion", "lion_betas",
                                         "lamb", "lamb_unclipped", "lambc", "lars", "lars_plain", "larc", "nlars",
                                         "nlarc"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Optimizer, TellsThatParametersHaveChanged) {
  Training training;
  Optimizer optimizer(training.store, {}, Training::groups());
  const std::uint64_t before = training.store.at("proj.weight").value.storage().version();
  const std::uint64_t untouched = training.store.at("late").value.storage().version();
  training.advance(optimizer, 0);
  EXPECT_GT(training.store.at("proj.weight").value.storage().version(), before);
  EXPECT_EQ(training.store.at("late").value.storage().version(), untouched);
}

TEST(Optimizer, KnowsWhichAlgorithmsNeedAllGradientsFirst) {
  for (const std::string_view name : optim::optimizer_names()) {
    Training training;
    OptimizerOptions options;
    options.opt = name;
    Optimizer optimizer(training.store, options, Training::groups());
    const bool lamb = name.starts_with("lamb");
    EXPECT_EQ(optimizer.needs_all_gradients(), lamb) << name;
    const nn::Parameter& parameter = training.store.at("proj.weight");
    const std::vector<float> before = parameter.value.values();
    set_gradient(parameter.value, training.file.get("gradients.proj.weight").select(0, 0));
    if (lamb) {
      EXPECT_THROW(optimizer.step_leaf(*parameter.value.slot(), 0.1), Error);
    } else {
      optimizer.step_leaf(*parameter.value.slot(), 0.1);
      EXPECT_NE(parameter.value.values(), before) << name;
    }
  }
}

// More than a block of the sums, and not a whole number of them; a weight of zeros has no norm to trust.
TEST(Optimizer, LambTrustsTheNormsOfTheWholeTensor) {
  constexpr std::int64_t n = 10001;
  for (const double start : {0.0, 0.5}) {
    nn::ParameterStore store;
    const Tensor weight = store.add("weight", {n, 1}, nn::Init::zeros());
    std::ranges::fill(weight.span<float>(), static_cast<float>(start));
    OptimizerOptions options;
    options.opt = "lamb";
    Optimizer optimizer(store, options, {{{"weight"}, 0.1, 1}});
    set_gradient(weight, Tensor::full({n, 1}, 2.0));
    optimizer.step(0.01);
    // All elements are alike, and their step is 0.01 of the norm; from zeros, that of Adam.
    const double expected = start == 0 ? -0.01 : start - 0.01 * start;
    for (const float value : weight.values()) {
      ASSERT_NEAR(value, expected, 2e-6 + 1e-3 * 0.01);
    }
  }
}

TEST(Optimizer, LeavesFrozenParametersAlone) {
  Training training;
  Optimizer optimizer(training.store, options_of("adamw"), Training::groups());
  training.store.set_trainable("head.weight", false);
  const std::vector<float> before = training.store.at("head.weight").value.values();
  const Tensor gradient = training.file.get("gradients.proj.weight").select(0, 0);
  set_gradient(training.store.at("proj.weight").value, gradient);
  optimizer.step(0.1);
  EXPECT_EQ(training.store.at("head.weight").value.values(), before);
}

TEST(Optimizer, NamesWhatIsWrongWithAState) {
  Training training;
  Optimizer optimizer(training.store, options_of("adamw"), Training::groups());
  const auto message = [&](const io::NamedTensors& state) {
    try {
      optimizer.load_state(state);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  io::NamedTensors state = optimizer.state();
  EXPECT_EQ(message(state), "no error");
  state.emplace_back("other.step", Tensor::zeros({}, DType::i64));
  EXPECT_THAT(message(state), testing::HasSubstr("'other.step'"));
  state.pop_back();
  state[1].second = Tensor::zeros({2});
  EXPECT_THAT(message(state), testing::HasSubstr("'proj.weight.exp_avg' must be [5, 7] f32, not [2] f32"));
  state.erase(state.begin() + 1);
  EXPECT_THAT(message(state), testing::HasSubstr("lacks 'proj.weight.exp_avg'"));
}

TEST(Optimizer, IsKnownByWhatItKeeps) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(optim::optimizers_that_keep("momentum_buffer"),
            (Names{"lars", "larc", "nlars", "nlarc", "sgd", "momentum"}));
  EXPECT_EQ(optim::optimizers_that_keep("exp_avg_sq"), (Names{"adamw", "adam", "nadamw", "lamb", "lambc"}));
  EXPECT_EQ(optim::optimizers_that_keep("exp_avg").size(), 6U) << "Lion too";
  EXPECT_TRUE(optim::moment_names({.opt = "sgd", .momentum = 0}).empty());
}

TEST(Optimizer, RejectsUnknownNames) {
  Training training;
  EXPECT_THROW(Optimizer(training.store, {"adamx"}, Training::groups()), Error);
  EXPECT_THROW(Optimizer(training.store, {}, {{{"nobody"}}}), Error);
  EXPECT_THROW(Optimizer(training.store, {}, {{{"late", "late"}}}), Error);
}

class Clipping : public testing::Test {
 protected:
  Clipping() : file(golden("optim.safetensors")) {
    for (const char* name : {"w", "b", "small"}) {
      const Tensor weight = file.get("clip.weight." + std::string(name));
      const Tensor parameter = store.add(name, weight.shape(), nn::Init::zeros());
      parameter.copy_from(weight);
      set_gradient(parameter, file.get("clip.gradient." + std::string(name)));
    }
  }
  // The clipped gradients must be those of the case.
  void expect(const std::string& name, double factor) const {
    for (const nn::Parameter& parameter : store.all()) {
      std::vector<float> clipped = autograd::grad(parameter.value).values();
      for (float& value : clipped) {
        value *= static_cast<float>(factor);
      }
      expect_close(Tensor::from(clipped, parameter.value.shape()), file.get("clip." + name + "." + parameter.name),
                   2e-6, name + "." + parameter.name);
    }
  }
  io::Safetensors file;
  nn::ParameterStore store;
};

TEST_F(Clipping, ByNormAgreesWithPyTorch) {
  const optim::Clipping clipping = optim::clip_gradients(store, 0.7, ClipMode::norm);
  const float total = file.get("clip.total").item();
  EXPECT_NEAR(clipping.norm, total, 1e-5 * total);
  expect("norm.0.7", clipping.factor);
}

TEST_F(Clipping, LeavesSmallGradientsAlone) {
  const optim::Clipping clipping = optim::clip_gradients(store, 100, ClipMode::norm);
  EXPECT_EQ(clipping.factor, 1);
  expect("norm.100", 1);
}

TEST_F(Clipping, ByValueAgreesWithPyTorch) {
  expect("value.0.2", optim::clip_gradients(store, 0.2, ClipMode::value).factor);
}

TEST_F(Clipping, AdaptivelyAgreesWithTimm) {
  expect("agc.0.05", optim::clip_gradients(store, 0.05, ClipMode::agc).factor);
}

// timm's train.py leaves the classifier out.
TEST_F(Clipping, AdaptivelyLeavesTheHeadAlone) {
  const std::vector<float> before = autograd::grad(store.at("w").value).values();
  optim::clip_gradients(store, 0.05, ClipMode::agc, 1, [](const std::string& name) { return name == "w"; });
  EXPECT_EQ(autograd::grad(store.at("w").value).values(), before);
  expect_close(autograd::grad(store.at("b").value), file.get("clip.agc.0.05.b"), 2e-6);
}

// Gradients of four batches added up, to be averaged: clipped as their average would be.
TEST_F(Clipping, TakesAccumulatedGradients) {
  for (const auto& [mode, limit, name] :
       {std::tuple{ClipMode::norm, 0.7, "norm.0.7"}, std::tuple{ClipMode::value, 0.2, "value.0.2"},
        std::tuple{ClipMode::agc, 0.05, "agc.0.05"}}) {
    for (const nn::Parameter& parameter : store.all()) {
      std::vector<float> sum = file.get("clip.gradient." + parameter.name).values();
      for (float& value : sum) {
        value *= 4;
      }
      set_gradient(parameter.value, Tensor::from(sum, parameter.value.shape()));
    }
    expect(name, optim::clip_gradients(store, limit, mode, 0.25).factor);
  }
}

TEST(ClipModes, HaveTimmsNames) {
  EXPECT_EQ(optim::clip_mode_named("norm"), ClipMode::norm);
  EXPECT_EQ(optim::clip_mode_named("value"), ClipMode::value);
  EXPECT_EQ(optim::clip_mode_named("agc"), ClipMode::agc);
  EXPECT_THROW(optim::clip_mode_named("l1"), Error);
}

// groups.NAME = [decayed, decayed with layer decay, lr scale, layer, layers, sizes …]
class Groups : public testing::Test {
 protected:
  Groups() : file(golden("optim.safetensors")) {
    for (const std::string& name : file.names()) {
      if (name.starts_with("groups.")) {
        const std::vector<float> row = file.get(name).values();
        const std::vector<std::int64_t> sizes(row.begin() + 5, row.end());
        store.add(name.substr(7), Shape(std::span(sizes)), nn::Init::zeros());
        rows[name.substr(7)] = row;
      }
    }
  }
  optim::NamePredicate exempt() const {
    return [this](const std::string& name) { return file.contains("no_weight_decay." + name); };
  }
  // Compares each parameter's group with what `expected` says; each must be in one.
  void expect(const std::vector<ParameterGroup>& groups,
              const std::function<std::pair<double, double>(const std::vector<float>&)>& expected) const {
    std::size_t count = 0;
    for (const ParameterGroup& group : groups) {
      for (const std::string& name : group.names) {
        const auto [weight_decay, lr_scale] = expected(rows.at(name));
        EXPECT_DOUBLE_EQ(group.weight_decay, weight_decay) << name;
        EXPECT_NEAR(group.lr_scale, lr_scale, 1e-7) << name;
        ++count;
      }
    }
    EXPECT_EQ(count, rows.size());
  }
  io::Safetensors file;
  nn::ParameterStore store;
  std::map<std::string, std::vector<float>> rows;
};

TEST_F(Groups, ByWeightDecayAreTimms) {
  const auto groups = optim::groups_by_weight_decay(store, 0.05, exempt());
  EXPECT_EQ(groups.size(), 2U);
  expect(groups, [](const std::vector<float>& row) { return std::pair{row[0] > 0 ? 0.05 : 0.0, 1.0}; });
}

TEST_F(Groups, WithoutWeightDecayAreOne) { EXPECT_EQ(optim::groups_by_weight_decay(store, 0, exempt()).size(), 1U); }

TEST_F(Groups, ByLayerAreTimms) {
  optim::LayerDecay decay;
  decay.layer_of = [this](const std::string& name) { return static_cast<std::int64_t>(rows.at(name)[3]); };
  decay.layers = static_cast<std::int64_t>(rows.begin()->second[4]);
  decay.rate = 0.7;
  decay.min_scale = 0.3;
  expect(optim::groups_by_layer(store, 0.05, exempt(), decay), [](const std::vector<float>& row) {
    return std::pair{row[1] > 0 ? 0.05 : 0.0, static_cast<double>(row[2])};
  });
}

TEST_F(Groups, LeaveOutWhatIsNotTrained) {
  const std::string frozen = store.all().front().name;
  store.set_trainable(frozen, false);
  store.add("norm.running_mean", {4, 4}, nn::Init::zeros(), true);
  for (const ParameterGroup& group : optim::groups_by_weight_decay(store, 0.05, exempt())) {
    EXPECT_THAT(group.names, testing::Not(testing::Contains(frozen)));
    EXPECT_THAT(group.names, testing::Not(testing::Contains("norm.running_mean")));
  }
}

TEST(ClippingByParameter, IsDinos) {
  const io::Safetensors file = golden("self_supervised/losses.safetensors");
  for (const double scale : {1.0, 0.5}) {
    nn::ParameterStore store;
    for (const char* name : {"weight", "bias"}) {
      const Tensor gradient = file.get(std::string("clip.") + name);
      const Tensor value = store.add(name, gradient.shape(), nn::Init::zeros());
      Tensor scaled = gradient.clone();
      for (float& g : scaled.span<float>()) {
        g /= static_cast<float>(scale);
      }
      set_gradient(value, scaled);
    }
    const optim::Clipping clipping = optim::clip_gradients(store, 0.3, optim::clip_mode_named("parameter"), scale);
    EXPECT_EQ(clipping.factor, scale);
    for (const nn::Parameter& parameter : store.all()) {
      Tensor clipped = autograd::grad(parameter.value).clone();
      for (float& g : clipped.span<float>()) {
        g *= static_cast<float>(scale);
      }
      expect_close(clipped, file.get("clip." + parameter.name + ".clipped"), 1e-5, parameter.name);
    }
  }
}

TEST(WeightDecay, CanFollowASchedule) {
  nn::ParameterStore store;
  const Tensor weight = store.add("weight", {2, 2}, nn::Init::ones());
  const Tensor bias = store.add("bias", {2}, nn::Init::ones());
  Optimizer optimizer(store, {.opt = "adamw"},
                      optim::groups_by_weight_decay(store, 0.1, [](const std::string&) { return false; }));
  optimizer.set_weight_decay(0.5);
  set_gradient(weight, Tensor::zeros({2, 2}));
  set_gradient(bias, Tensor::zeros({2}));
  optimizer.step(0.1);
  EXPECT_FLOAT_EQ(weight.data<float>()[0], 0.95F);
  EXPECT_EQ(bias.data<float>()[0], 1) << "a group without decay stays so";
  store.zero_grad();
  set_gradient(bias, Tensor::zeros({2}));
  optimizer.step(0.1);
  EXPECT_FLOAT_EQ(weight.data<float>()[0], 0.95F) << "a parameter without gradient neither moves nor decays";
}

TEST(BiasScaler, RaisesTheRateOfTheBiasesOfBatchNormsAlone) {
  nn::ParameterStore store;
  store.add("conv.weight", {2, 2}, nn::Init::ones());
  store.add("conv.bias", {2}, nn::Init::ones());
  store.add("norm.bias", {2}, nn::Init::ones());
  store.add("norm.running_mean", {2}, nn::Init::zeros(), true);
  std::vector<ParameterGroup> groups = optim::one_group(store, 0.5);
  EXPECT_TRUE(optim::scale_norm_biases(groups, store, 8));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].names, ::testing::ElementsAre("conv.weight", "conv.bias"));
  EXPECT_EQ(groups[0].weight_decay, 0.5);
  EXPECT_EQ(groups[0].lr_scale, 1);
  EXPECT_THAT(groups[1].names, ::testing::ElementsAre("norm.bias"));
  EXPECT_EQ(groups[1].weight_decay, 0.0625);
  EXPECT_EQ(groups[1].lr_scale, 8);
  store.set_trainable("norm.bias", false);
  groups = optim::one_group(store, 0.5);
  EXPECT_FALSE(optim::scale_norm_biases(groups, store, 8));
}

TEST(WeightDecay, CanBeOfAll) {
  nn::ParameterStore store;
  store.add("weight", {2, 2}, nn::Init::ones());
  store.add("bias", {2}, nn::Init::ones());
  store.add("frozen", {2}, nn::Init::ones());
  store.set_trainable("frozen", false);
  const std::vector<ParameterGroup> groups = optim::one_group(store, 0.1);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_THAT(groups[0].names, ::testing::ElementsAre("weight", "bias"));
  EXPECT_EQ(groups[0].weight_decay, 0.1);
}

}  // namespace
}  // namespace vitrail::test
