#include "vitrail/ops/math/norm.h"

#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

void expect_layer_norm(const std::string& name, float eps, DType dtype, double tolerance) {
  const Case one(golden("ops/norm.safetensors"), name);
  expect_golden(one, {"x"}, {"weight", "bias"}, dtype, tolerance,
                [eps](const Operands& o) { return ops::layer_norm(o.at("x"), o.at("weight"), o.at("bias"), eps); });
}

void expect_rms_norm(const std::string& name, float eps, DType dtype, double tolerance) {
  const Case one(golden("ops/norm.safetensors"), name);
  expect_golden(one, {"x"}, {"weight"}, dtype, tolerance,
                [eps](const Operands& o) { return ops::rms_norm(o.at("x"), o.at("weight"), eps); });
}

TEST(LayerNorm, AgreesWithPyTorch) {
  // One feature is its own mean: x̂ and dx are 0 but for rounding, which a relative error cannot judge; see below.
  for (const char* width : {"3", "17", "64", "65"}) {
    expect_layer_norm("layer_norm." + std::string(width), 1e-6F, DType::f32, 3e-6);
    expect_layer_norm("layer_norm." + std::string(width), 1e-6F, DType::bf16, 1e-2);
  }
}

TEST(LayerNorm, WithoutParametersAgreesWithPyTorch) {
  expect_layer_norm("layer_norm.plain", 1e-5F, DType::f32, 3e-6);
  expect_layer_norm("layer_norm.plain", 1e-5F, DType::bf16, 1e-2);
}

TEST(LayerNorm, FarFromZeroKeepsItsDigits) { expect_layer_norm("layer_norm.shifted", 1e-5F, DType::f32, 5e-5); }

TEST(LayerNorm, OfOneFeatureIsItsBias) {
  const Tensor bias = Tensor::from(std::vector<float>{0.25F}, {1});
  const Tensor y = ops::layer_norm(random_tensor({4, 1}), Tensor::full({1}, 2), bias, 1e-6F);
  expect_close(y, Tensor::full({4, 1}, 0.25), 1e-6);
}

TEST(RmsNorm, AgreesWithPyTorch) {
  for (const char* width : {"3", "17", "64", "65"}) {
    expect_rms_norm("rms_norm." + std::string(width), 1e-6F, DType::f32, 3e-6);
    expect_rms_norm("rms_norm." + std::string(width), 1e-6F, DType::bf16, 1e-2);
  }
  expect_rms_norm("rms_norm.plain", 1e-5F, DType::f32, 3e-6);
}

TEST(LayerNorm, HasTheGradientOfFiniteDifferences) {
  check_gradients([](const std::vector<Tensor>& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-5F); },
                  {random_tensor({3, 5, 19}, 1), random_tensor({19}, 2), random_tensor({19}, 3)});
  check_gradients([](const std::vector<Tensor>& in) { return ops::rms_norm(in[0], in[1], 1e-5F); },
                  {random_tensor({4, 18}, 1), random_tensor({18}, 2)});
}

TEST(LayerNorm, GivesParametersAloneTheirGradients) {
  const Tensor x = random_tensor({7, 13});
  Tensor weight = random_tensor({13}, 1);
  autograd::require_grad(weight);
  autograd::Tape tape;
  tape.backward(ops::layer_norm(x, weight, {}, 1e-5F), random_tensor({7, 13}, 2));
  EXPECT_TRUE(autograd::grad(weight).defined());
}

// Many rows, so that the threads share them: the sums over rows must still be right, and the same each time.
TEST(LayerNorm, SumsParameterGradientsOverThreadsTheSameEachTime) {
  const Tensor x = random_tensor({1500, 33}, 1);
  const Tensor dy = random_tensor({1500, 33}, 2);
  std::vector<std::vector<float>> gradients;
  for (int run = 0; run < 2; ++run) {
    Tensor weight = random_tensor({33}, 3);
    Tensor bias = random_tensor({33}, 4);
    autograd::require_grad(weight);
    autograd::require_grad(bias);
    autograd::Tape tape;
    tape.backward(ops::layer_norm(x, weight, bias, 1e-5F), dy);
    gradients.push_back(autograd::grad(weight).values());
    std::vector<double> sums(33);
    for (std::int64_t row = 0; row < 1500; ++row) {
      for (std::int64_t i = 0; i < 33; ++i) {
        sums[static_cast<std::size_t>(i)] += dy.data<float>()[row * 33 + i];
      }
    }
    const std::vector<float> bias_gradient = autograd::grad(bias).values();
    for (std::size_t i = 0; i < 33; ++i) {
      EXPECT_NEAR(bias_gradient[i], sums[i], 1e-3);
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(LayerNorm, TakesStridedAndEmptyInput) {
  const Tensor x = random_tensor({6, 5});
  expect_close(ops::layer_norm(x.transpose(0, 1), {}, {}, 1e-5F),
               ops::layer_norm(x.transpose(0, 1).contiguous(), {}, {}, 1e-5F), 0);
  EXPECT_EQ(ops::layer_norm(Tensor::empty({0, 4}), {}, {}, 1e-5F).shape().str(), "[0, 4]");
}

TEST(LayerNorm, WrongParametersAreErrors) {
  EXPECT_THROW(ops::layer_norm(random_tensor({2, 4}), random_tensor({3}), {}, 1e-5F), Error);
  EXPECT_THROW(ops::layer_norm(Tensor::zeros({2, 4}, DType::i64), {}, {}, 1e-5F), Error);
}

}  // namespace
}  // namespace vitrail::test
