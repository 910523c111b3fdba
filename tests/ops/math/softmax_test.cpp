#include "vitrail/ops/math/softmax.h"

#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"

namespace vitrail::test {
namespace {

using Function = Tensor (*)(const Tensor&, int);

void expect_softmax(const std::string& name, Function function, int dim, DType dtype, double tolerance) {
  const Case one(golden("ops/softmax.safetensors"), name);
  expect_golden(one, {"x"}, {}, dtype, tolerance, [=](const Operands& o) { return function(o.at("x"), dim); });
}

TEST(Softmax, AgreesWithPyTorch) {
  for (const char* size : {"3", "17", "65"}) {
    expect_softmax("softmax." + std::string(size), ops::softmax, -1, DType::f32, 2e-6);
    expect_softmax("softmax." + std::string(size), ops::softmax, -1, DType::bf16, 1e-2);
    expect_softmax("log_softmax." + std::string(size), ops::log_softmax, -1, DType::f32, 2e-6);
    expect_softmax("log_softmax." + std::string(size), ops::log_softmax, -1, DType::bf16, 2e-2);
  }
}

TEST(Softmax, WorksAlongAnyDimension) {
  for (const int dim : {0, 1}) {
    expect_softmax("softmax.dim" + std::to_string(dim), ops::softmax, dim, DType::f32, 2e-6);
    expect_softmax("log_softmax.dim" + std::to_string(dim), ops::log_softmax, dim, DType::f32, 2e-6);
  }
}

TEST(Softmax, OfLargeNumbersDoesNotOverflow) { expect_softmax("softmax.large", ops::softmax, -1, DType::f32, 1e-5); }

TEST(Softmax, OfOneElementIsOne) {
  expect_close(ops::softmax(random_tensor({3, 1}), 1), Tensor::full({3, 1}, 1), 0);
  expect_close(ops::log_softmax(random_tensor({3, 1}), 1), Tensor::zeros({3, 1}), 0);
}

TEST(Softmax, GivesMinusInfinityNoWeight) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor y = ops::softmax(Tensor::from(std::vector<float>{1, -inf, 1}, {1, 3}), 1);
  expect_close(y, Tensor::from(std::vector<float>{0.5F, 0, 0.5F}, {1, 3}), 1e-6);
}

TEST(Softmax, HasTheGradientOfFiniteDifferences) {
  for (const auto function : {ops::softmax, ops::log_softmax}) {
    for (const int dim : {0, 1, 2}) {
      check_gradients([&](const std::vector<Tensor>& in) { return function(in[0], dim); }, {random_tensor({3, 4, 21})});
    }
  }
}

TEST(Softmax, TakesEmptyInput) {
  EXPECT_EQ(ops::softmax(Tensor::empty({0, 4}), -1).shape().str(), "[0, 4]");
  EXPECT_EQ(ops::softmax(Tensor::empty({4, 0}), -1).shape().str(), "[4, 0]");
}

}  // namespace
}  // namespace vitrail::test
