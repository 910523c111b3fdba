#include "vitrail/ops/math/activation.h"

#include <limits>

#include "tests/ops/golden_cases.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

class Activations : public testing::TestWithParam<const char*> {};

TEST_P(Activations, AgreeWithPyTorchInFloat) {
  const Case one(golden("ops/activation.safetensors"), GetParam());
  expect_golden(one, {"x"}, {}, DType::f32, 2e-6,
                [](const Operands& o) { return ops::activate(o.at("x"), ops::activation_named(GetParam())); });
}

TEST_P(Activations, AgreeWithPyTorchInBf16) {
  const Case one(golden("ops/activation.safetensors"), GetParam());
  expect_golden(one, {"x"}, {}, DType::bf16, 1.5e-2,
                [](const Operands& o) { return ops::activate(o.at("x"), ops::activation_named(GetParam())); });
}

TEST_P(Activations, HaveTheGradientOfFiniteDifferences) {
  for (const std::int64_t n : {1, 3, 17, 65}) {
    check_gradients(
        [](const std::vector<Tensor>& in) { return ops::activate(in[0], ops::activation_named(GetParam())); },
        // Away from ReLU's corner.
        {Tensor::from(
            [n] {
              std::vector<float> values = random_tensor({n}).values();
              for (float& value : values) {
                value += value < 0 ? -0.2F : 0.2F;
              }
              return values;
            }(),
            {n})});
  }
}

TEST_P(Activations, TakeStridedAndEmptyInput) {
  const auto activation = ops::activation_named(GetParam());
  const Tensor x = random_tensor({5, 7});
  expect_close(ops::activate(x.transpose(0, 1), activation), ops::activate(x, activation).transpose(0, 1), 0);
  EXPECT_EQ(ops::activate(Tensor::empty({0, 3}), activation).shape().str(), "[0, 3]");
}

TEST_P(Activations, KeepNaN) {
  const AllowNonFinite allow;
  const Tensor x = Tensor::from(std::vector<float>(19, std::numeric_limits<float>::quiet_NaN()), {19});
  for (const float y : ops::activate(x, ops::activation_named(GetParam())).values()) {
    EXPECT_TRUE(std::isnan(y));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values("relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Activation, TailsAndLargeNumbersDoNotOverflow) {
  const Tensor x = Tensor::from(std::vector<float>{-1e30F, -1e4F, -100, -20, 20, 100, 1e4F, 1e30F}, {8});
  for (const char* name : {"gelu", "gelu_tanh", "quick_gelu", "silu"}) {
    const std::vector<float> y = ops::activate(x, ops::activation_named(name)).values();
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(y[i], 0, 1e-6) << name << " at " << x.values()[i];
      EXPECT_FLOAT_EQ(y[4 + i], x.values()[4 + i]) << name;
    }
  }
}

TEST(Activation, IdentityIsTheTensorItself) {
  const Tensor x = random_tensor({3});
  EXPECT_EQ(ops::activate(x, ops::Activation::identity).raw(), x.raw());
}

TEST(Activation, UnknownNamesAndIntegersAreErrors) {
  EXPECT_THROW(ops::activation_named("gelo"), Error);
  EXPECT_THROW(ops::relu(Tensor::zeros({2}, DType::i64)), Error);
}

}  // namespace
}  // namespace vitrail::test
