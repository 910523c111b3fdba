#include "vitrail/optim/ema.h"

#include "tests/support/golden.h"
#include "vitrail/optim/lookahead.h"

namespace vitrail::test {
namespace {

using optim::Ema;
using optim::EmaOptions;

class Averages : public testing::Test {
 protected:
  Averages() : weights(golden("optim.safetensors").get("ema.weights")) {
    store.add("weight", {3, 11}, nn::Init::zeros());
    set(0);
  }
  void set(std::int64_t step) const { store.at("weight").value.copy_from(weights.select(0, step)); }
  // The average after each update must be timm's.
  void expect(const std::string& name, const EmaOptions& options) const {
    set(0);
    Ema ema(store, options);
    const Tensor expected = golden("optim.safetensors").get("ema." + name);
    for (std::int64_t step = 1; step <= expected.size(0); ++step) {
      set(step);
      ema.update(store, step);
      expect_close(ema.state().front().second, expected.select(0, step - 1), 1e-6, name + std::to_string(step));
    }
  }
  Tensor weights;
  nn::ParameterStore store;
};

TEST_F(Averages, AreTimms) {
  EmaOptions options;
  options.decay = 0.9;
  expect("plain", options);
  options.decay = 0.8;
  options.update_after_step = 3;
  expect("late", options);
}

TEST_F(Averages, WithWarmUpAreTimms) {
  EmaOptions options;
  options.decay = 0.7;
  options.warmup = true;
  options.warmup_gamma = 2;
  options.warmup_power = 0.75;
  options.min_decay = 0.1;
  expect("warmup", options);
}

// Of weights that were 1 at first and are 0 from then on, the average is what is left of the first.
TEST_F(Averages, KnowHowMuchOfThemIsLeftOfTheFirstWeights) {
  for (const bool warmup : {false, true}) {
    const Tensor& weight = store.at("weight").value;
    weight.fill(1);
    Ema ema(store, {.decay = 0.8, .update_after_step = 2, .warmup = warmup});
    for (std::int64_t step = 1; step <= 9; ++step) {
      weight.fill(step <= 3 ? 1 : 0);
      ema.update(store, step);
      EXPECT_NEAR(ema.share_of_first(step), ema.state().front().second.values()[0], 1e-6) << warmup << step;
    }
  }
}

TEST_F(Averages, TakeThePlaceOfTheWeightsAndGiveItBack) {
  Ema ema(store, {});
  set(1);
  const std::uint64_t version = store.at("weight").value.storage().version();
  ema.exchange(store);
  EXPECT_EQ(store.at("weight").value.values(), weights.select(0, 0).values());
  EXPECT_GT(store.at("weight").value.storage().version(), version);
  ema.exchange(store);
  EXPECT_EQ(store.at("weight").value.values(), weights.select(0, 1).values());
  EXPECT_EQ(ema.state().front().second.values(), weights.select(0, 0).values());
}

TEST_F(Averages, CopyBuffersOfIntegers) {
  const Tensor count = store.add("batches", {1}, nn::Init::zeros(), true, DType::i64);
  Ema ema(store, {});
  count.fill(7);
  ema.update(store, 100);
  EXPECT_EQ(ema.state().back().second.values(), std::vector<float>{7});
}

TEST_F(Averages, GoOnFromTheirState) {
  Ema ema(store, {});
  set(1);
  ema.update(store, 1);
  Ema other(store, {});
  set(2);
  other.load_state(ema.state());
  ema.update(store, 2);
  other.update(store, 2);
  EXPECT_EQ(ema.state().front().second.values(), other.state().front().second.values());
  EXPECT_THROW(other.load_state({}), Error);
  EXPECT_THROW(other.load_state({{"weight", Tensor::zeros({3})}}), Error);
}

TEST(Lookahead, ReturnsToSlowWeightsAndEndsAsThem) {
  nn::ParameterStore store;
  const Tensor weight = store.add("weight", {1}, nn::Init::zeros());
  optim::Lookahead lookahead(store, {.every = 2, .decay = 0.5, .updates = 5});
  const auto after = [&](std::int64_t step, float value) {
    weight.data<float>()[0] = value;
    lookahead.update(store, step);
    return weight.data<float>()[0];
  };
  EXPECT_EQ(after(1, 1), 1);
  const float decay2 = 0.25F * 0.064F;  // 0.5² (2 / 5)³
  EXPECT_FLOAT_EQ(after(2, 10), 10 * (1 - decay2));
  EXPECT_EQ(after(3, 7), 7);
  const float decay4 = 0.25F * 0.512F;
  const float slow = 10 * (1 - decay2) * decay4 + 20 * (1 - decay4);
  EXPECT_FLOAT_EQ(after(4, 20), slow);
  EXPECT_FLOAT_EQ(after(5, 99), slow) << "the last update ends at the slow weights";
  EXPECT_FLOAT_EQ(lookahead.state()[0].second.item(), slow);
  EXPECT_THROW(optim::Lookahead(store, {.every = 0, .updates = 5}), Error);
}

TEST(Follow, AveragesParametersButNotBuffers) {
  nn::ParameterStore target;
  nn::ParameterStore source;
  const Tensor weight = target.add("weight", {2}, nn::Init::ones());
  const Tensor mean = target.add("mean", {2}, nn::Init::ones(), true);
  source.add("other", {3}, nn::Init::zeros());
  source.add("weight", {2}, nn::Init::constant(3));
  source.add("mean", {2}, nn::Init::constant(3), true);
  optim::follow(target, source, 0.75);
  EXPECT_FLOAT_EQ(weight.data<float>()[1], 1.5F);
  EXPECT_EQ(mean.data<float>()[1], 1);
}

}  // namespace
}  // namespace vitrail::test
