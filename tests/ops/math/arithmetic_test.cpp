#include "vitrail/ops/math/arithmetic.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::test {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Unary = std::function<Tensor(const Tensor&)>;

const std::map<std::string, Binary> binary_functions = {{"add", ops::add},           {"subtract", ops::subtract},
                                                        {"multiply", ops::multiply}, {"divide", ops::divide},
                                                        {"maximum", ops::maximum},   {"minimum", ops::minimum}};

const std::map<std::string, Unary> unary_functions = {
    {"add_number", [](const Tensor& x) { return x + 0.75F; }},
    {"multiply_number", [](const Tensor& x) { return x * -1.25F; }},
    {"negative", ops::negative},
    {"square", [](const Tensor& x) { return ops::power(x, 2); }},
    {"cube", [](const Tensor& x) { return ops::power(x, 3); }},
    {"power", [](const Tensor& x) { return ops::power(x, -1.5F); }},
    {"exp", ops::exp},
    {"log", ops::log},
    {"sqrt", ops::sqrt},
    {"rsqrt", ops::rsqrt},
    {"abs", ops::abs},
    {"clamp", [](const Tensor& x) { return ops::clamp(x, -0.5F, 1.5F); }}};

// The same elements, not contiguous.
Tensor strided(const Tensor& x) {
  return x.rank() < 2 ? x : ops::transpose(ops::contiguous(ops::transpose(x, 0, -1)), 0, -1);
}

void expect_golden_arithmetic(DType dtype, double tolerance, const Unary& view) {
  const io::Safetensors file = golden("ops/arithmetic.safetensors");
  for (const auto& [name, function] : binary_functions) {
    for (int i = 0; i < 9; ++i) {
      const Case one(file, name + "." + std::to_string(i));
      ASSERT_TRUE(one.exists()) << one.name();
      expect_golden(one, {"a", "b"}, {}, dtype, tolerance,
                    [&](const Operands& in) { return function(view(in.at("a")), view(in.at("b"))); });
    }
  }
  for (const auto& [name, function] : unary_functions) {
    const Case one(file, name);
    ASSERT_TRUE(one.exists()) << one.name();
    expect_golden(one, {"x"}, {}, dtype, tolerance, [&](const Operands& in) { return function(view(in.at("x"))); });
  }
}

Tensor as_it_is(const Tensor& x) { return x; }

TEST(Arithmetic, GivesPyTorchsValuesAndGradients) { expect_golden_arithmetic(DType::f32, 2e-6, as_it_is); }
TEST(Arithmetic, GivesThemInBf16) { expect_golden_arithmetic(DType::bf16, 2e-2, as_it_is); }
TEST(Arithmetic, GivesThemForOperandsThatAreNotContiguous) {
  expect_golden_arithmetic(DType::f32, 2e-6, strided);
  expect_golden_arithmetic(DType::bf16, 2e-2, strided);
}

TEST(Arithmetic, HasTheGradientsOfFiniteDifferences) {
  for (const auto& [name, function] : binary_functions) {
    SCOPED_TRACE(name);
    const Tensor b = name == "divide" ? Tensor::full({1, 5, 1}, 1.7) : random_tensor({1, 5, 1}, 2);
    check_gradients([&](const std::vector<Tensor>& in) { return function(in[0], in[1]); },
                    {random_tensor({3, 1, 7}, 1), b}, 5e-3);
  }
}

// Sizes at which the threads share the work, whose rows are longer than a block, and shorter than a vector.
TEST(Arithmetic, BroadcastsTensorsOfAnySize) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{9, 65, 192}, {192}},
                                                       {{9, 65, 192}, {1, 65, 192}},
                                                       {{9, 65, 192}, {9, 65, 1}},
                                                       {{9, 65, 192}, {9, 1, 192}},
                                                       {{3, 20000}, {3, 1}},
                                                       {{3, 20000}, {20000}},
                                                       {{20000, 3}, {3}},
                                                       {{20000, 3}, {20000, 1}},
                                                       {{70000}, {}},
                                                       {{70000}, {70000}},
                                                       {{7, 1, 5, 1, 33}, {1, 6, 1, 4, 1}}};
  for (const auto& [left, right] : shapes) {
    SCOPED_TRACE(left.str() + " and " + right.str());
    const Tensor a = random_tensor(left, 1);
    const Tensor b = random_tensor(right, 2);
    const Shape full = broadcast(left, right);
    const std::vector<float> x = a.expand(full).values();
    const std::vector<float> y = b.expand(full).values();
    std::vector<float> expected(x.size());
    std::ranges::transform(x, y, expected.begin(), std::minus<>());
    EXPECT_EQ(ops::subtract(a, b).values(), expected);
    EXPECT_EQ(ops::subtract(strided(a), strided(b)).values(), expected);
  }
}

TEST(Arithmetic, SumsTheGradientOfWhatWasRepeatedInHigherPrecision) {
  Tensor gamma = as(Tensor::full({192}, 1), DType::bf16);
  const Tensor x = as(Tensor::full({64, 65, 192}, 1), DType::bf16);
  autograd::require_grad(gamma);
  autograd::Tape tape;
  const Tensor y = ops::multiply(x, gamma);
  tape.backward(y, as(Tensor::full(y.shape(), 1), DType::bf16));
  EXPECT_THAT(autograd::grad(gamma).values(), testing::Each(4160.0F));  // bf16 steps would stick at 256
}

TEST(Arithmetic, MayUseOneTensorTwice) {
  Tensor x = Tensor::full({3}, 2);
  autograd::require_grad(x);
  autograd::Tape tape;
  const Tensor y = ops::add(ops::multiply(x, x), ops::add(x, x));
  tape.backward(y, Tensor::from(std::vector<float>{1, 2, 3}, {3}));
  EXPECT_THAT(autograd::grad(x).values(), testing::ElementsAre(6, 12, 18));
}

TEST(Arithmetic, GivesTwoLeavesGradientsOfTheirOwn) {
  Tensor a = Tensor::full({2}, 1);
  Tensor b = Tensor::full({2}, 1);
  autograd::require_grad(a);
  autograd::require_grad(b);
  {
    autograd::Tape tape;
    const Tensor y = a + b;
    tape.backward(y, Tensor::full({2}, 1));
  }
  autograd::grad(a).fill(7);
  EXPECT_THAT(autograd::grad(b).values(), testing::Each(1.0F));
}

TEST(Arithmetic, PassesNaNOn) {
  const AllowNonFinite allow;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::from(std::vector<float>{nan, 1, 3}, {3});
  const Tensor b = Tensor::from(std::vector<float>{2, nan, 4}, {3});
  for (const auto& [name, function] : binary_functions) {
    const std::vector<float> values = function(a, b).values();
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && !std::isnan(values[2])) << name;
  }
  for (const auto& [name, function] : unary_functions) {
    EXPECT_TRUE(std::isnan(function(a).values()[0])) << name;
  }
}

TEST(Arithmetic, WorksOnNothing) {
  Tensor a = Tensor::empty({3, 0, 5});
  Tensor b = Tensor::full({5}, 2);
  autograd::require_grad(a);
  autograd::require_grad(b);
  autograd::Tape tape;
  const Tensor y = ops::multiply(a, b);
  EXPECT_EQ(y.shape(), (Shape{3, 0, 5}));
  tape.backward(y, Tensor::empty(y.shape()));
  EXPECT_EQ(autograd::grad(a).shape(), a.shape());
  EXPECT_THAT(autograd::grad(b).values(), testing::Each(0.0F));
}

TEST(Arithmetic, SaysWhatDoesNotFit) {
  const Tensor x = Tensor::full({2, 3}, 1);
  EXPECT_EQ(error_of([&] { ops::add(x, as(x, DType::bf16)); }),
            "add() needs two operands of f32 or two of bf16, not f32 and bf16: cast one of them");
  EXPECT_EQ(error_of([&] { ops::multiply(x, Tensor::full({4}, 1)); }),
            "the shapes [2, 3] and [4] cannot be broadcast together");
  EXPECT_EQ(error_of([] { ops::exp(Tensor::zeros({1}, DType::i64)); }), "exp() works on f32 and bf16, not on i64");
}

}  // namespace
}  // namespace vitrail::test
