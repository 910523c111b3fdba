#include "vitrail/nn/parameters.h"

#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::nn {
namespace {

struct Statistics {
  double mean = 0;
  double std = 0;
  double largest = 0;
};
Statistics statistics_of(const Tensor& tensor) {
  const std::vector<float> values = tensor.values();
  Statistics result;
  double squares = 0;
  for (const float value : values) {
    result.mean += value;
    squares += static_cast<double>(value) * value;
    result.largest = std::max(result.largest, std::abs(static_cast<double>(value)));
  }
  const auto n = static_cast<double>(values.size());
  result.mean /= n;
  result.std = std::sqrt(squares / n - result.mean * result.mean);
  return result;
}

Statistics fresh(const Init& init, const Shape& shape = {200, 500}) {
  ParameterStore store({3});
  return statistics_of(store.add("w", shape, init));
}

TEST(Init, HasTheMomentsOfItsDistribution) {
  EXPECT_NEAR(fresh(Init::normal(0.5F)).std, 0.5, 0.005);
  EXPECT_NEAR(fresh(Init::trunc_normal(0.02F)).std, 0.02, 2e-4);
  EXPECT_NEAR(fresh(Init::uniform(3)).std, 3 / std::sqrt(3.0), 0.02);
  EXPECT_NEAR(fresh(Init::uniform(3)).mean, 0, 0.03);
  const Statistics shifted = fresh(Init::uniform(2, 5).scaled(0.5F));
  EXPECT_NEAR(shifted.mean, 1.75, 0.01);
  EXPECT_NEAR(shifted.std, 1.5 / std::sqrt(12.0), 0.01);
  EXPECT_LE(shifted.largest, 2.5);
  EXPECT_EQ(fresh(Init::ones()).mean, 1);
  EXPECT_EQ(fresh(Init::constant(0.25F)).mean, 0.25);
  EXPECT_EQ(fresh(Init::zeros()).largest, 0);
  EXPECT_NEAR(fresh(Init::normal(0.5F).scaled(0.1F)).std, 0.05, 0.0005);
}

TEST(Init, CutsTruncatedNormalsWhereTimmDoes) {
  const Statistics absolute = fresh(Init::trunc_normal(1));  // bounds ±2, in values
  EXPECT_LE(absolute.largest, 2);
  EXPECT_NEAR(absolute.std, 0.87962566, 0.01);
  EXPECT_LE(fresh(Init::trunc_normal(4)).largest, 2);
  const Statistics relative = fresh(Init::trunc_normal_tf(3));  // bounds ±2 standard deviations
  EXPECT_LE(relative.largest, 6);
  EXPECT_NEAR(relative.std, 3 * 0.87962566, 0.03);
}

TEST(Init, ScalesByTheFansOfAWeight) {
  EXPECT_NEAR(fresh(Init::xavier_uniform({200, 500})).largest, std::sqrt(6.0 / 700), 1e-4);
  EXPECT_NEAR(fresh(Init::kaiming_uniform({200, 500})).largest, 1 / std::sqrt(500.0), 1e-4);
  const Shape kernel = {64, 10, 5, 5};
  EXPECT_NEAR(fresh(Init::lecun_normal(kernel), kernel).std, std::sqrt(1.0 / 250), 1e-3);
}

TEST(Init, CanFillTheLowerHalfDifferently) {
  ParameterStore store;
  const Tensor bias = store.add("bias", {5}, Init::zeros().with_lower_half(Init::ones()));
  EXPECT_EQ(bias.values(), (std::vector<float>{0, 0, 1, 1, 1}));
}

TEST(ParameterStore, FillsByNameSoThatTheOrderDoesNotMatter) {
  ParameterStore a({5});
  ParameterStore b({5});
  const Tensor first = a.add("one", {40}, Init::normal(1));
  a.add("two", {40}, Init::normal(1));
  b.add("two", {40}, Init::normal(1));
  EXPECT_EQ(first.values(), b.add("one", {40}, Init::normal(1)).values());
  EXPECT_NE(first.values(), a.at("two").value.values());
  ParameterStore other_seed({6});
  EXPECT_NE(first.values(), other_seed.add("one", {40}, Init::normal(1)).values());
}

TEST(Scope, AsksTheRuleOfItsModel) {
  ParameterStore store;
  const auto set = [](std::string_view wanted, float value) {
    return [wanted, value](std::string_view name, const Shape&, const Init& own) {
      return name == wanted ? Init::constant(value) : own;
    };
  };
  const Scope outer = Scope(store).with_init(set("a.bias", 7)) / "a";
  EXPECT_EQ(outer.parameter("bias", {1}, Init::zeros()).item(), 7);
  EXPECT_EQ(outer.parameter("weight", {1}, Init::ones()).item(), 1);
  // A model inside is told its own names, and asks nobody else.
  const Scope inner = (outer / "inner").with_init(set("head.weight", 3));
  EXPECT_EQ((inner / "head").parameter("weight", {1}, Init::zeros()).item(), 3);
  EXPECT_EQ((inner / "head").path(), "a.inner.head");
  EXPECT_EQ((inner.with_init({}) / "again" / "head").parameter("weight", {1}, Init::ones()).item(), 1);
  EXPECT_EQ(inner.buffer("a.bias", {1}, Init::zeros()).item(), 0);
}

TEST(ParameterStore, NamesByScope) {
  ParameterStore store;
  const Scope scope = Scope(store) / "blocks" / 3 / "attn";
  scope.parameter("weight", {2, 3}, Init::zeros());
  scope.buffer("count", {}, Init::zeros(), DType::i64);
  EXPECT_NE(store.find("blocks.3.attn.weight"), nullptr);
  EXPECT_TRUE(store.at("blocks.3.attn.count").buffer);
  EXPECT_EQ(store.count(), 6);
  EXPECT_THROW(scope.parameter("weight", {1}, Init::zeros()), Error);
  EXPECT_THROW(store.at("blocks.3.attn.wight"), Error);
}

TEST(ParameterStore, FreezesTheHandlesThatLayersHold) {
  ParameterStore store;
  const Tensor held = store.add("w", {2}, Init::ones());
  EXPECT_TRUE(autograd::requires_grad(held));
  store.set_trainable("w", false);
  EXPECT_FALSE(autograd::requires_grad(held));
  EXPECT_FALSE(store.at("w").trainable);
  store.set_trainable("w", true);
  EXPECT_TRUE(autograd::requires_grad(held));
  store.add("running", {2}, Init::ones(), true);
  EXPECT_THROW(store.set_trainable("running", true), Error);
}

TEST(ParameterStore, CanKnowShapesWithoutMemory) {
  const std::size_t before = Allocator::instance().statistics().in_use;
  ParameterStore store({.fill = Fill::meta});
  store.add("w", {1 << 20, 1 << 20}, Init::normal(1));
  EXPECT_EQ(store.count(), std::int64_t{1} << 40);
  EXPECT_EQ(Allocator::instance().statistics().in_use, before);
}

}  // namespace
}  // namespace vitrail::nn
