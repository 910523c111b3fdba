#include "vitrail/ops/math/scale.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {
namespace {

using ops::scale;

TEST(Scale, IsAProductAndTwoSums) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : {Shape{3, 7, 17}, Shape{2, 64}, Shape{5}, Shape{900, 33}, Shape{0, 4}}) {
      const std::int64_t width = shape[-1];
      const Tensor x = ops::cast(random_tensor(shape, 1), dtype);
      const Tensor residual = ops::cast(random_tensor(shape, 2), dtype);
      const Tensor weight = random_tensor({width}, 3);
      const Tensor bias = random_tensor({width}, 4);
      const Tensor product = ops::cast(x, DType::f32) * weight;
      const double tolerance = dtype == DType::f32 ? 1e-6 : 1e-2;
      expect_close(scale(x, weight), product, tolerance);
      expect_close(scale(x, weight, bias), product + bias, tolerance);
      expect_close(scale(x, weight, bias, residual), product + bias + ops::cast(residual, DType::f32), tolerance);
      expect_close(scale(x, weight, {}, residual), product + ops::cast(residual, DType::f32), tolerance);
    }
  }
}

TEST(Scale, HasTheGradientsOfFiniteDifferences) {
  using Inputs = std::vector<Tensor>;
  check_gradients(
      [](const Inputs& in) { return scale(in[0], in[1], in[2], in[3]); },
      {random_tensor({4, 3, 19}, 1), random_tensor({19}, 2), random_tensor({19}, 3), random_tensor({4, 3, 19}, 4)});
  check_gradients([](const Inputs& in) { return scale(in[0], in[1]); },
                  {random_tensor({6, 16}, 1), random_tensor({16}, 2)});
}

TEST(Scale, SumsItsGradientsInF32) {
  const auto gradients = [](DType dtype) {
    Tensor x = ops::cast(random_tensor({2000, 24}, 1), dtype).clone();
    Tensor weight = random_tensor({24}, 2);
    Tensor bias = random_tensor({24}, 3);
    for (Tensor* tensor : {&x, &weight, &bias}) {
      autograd::require_grad(*tensor);
    }
    autograd::Tape tape;
    tape.backward(scale(x, weight, bias), ops::cast(random_tensor({2000, 24}, 4), dtype));
    EXPECT_EQ(autograd::grad(weight).dtype(), DType::f32);
    return std::vector<Tensor>{autograd::grad(x), autograd::grad(weight), autograd::grad(bias)};
  };
  const std::vector<Tensor> exact = gradients(DType::f32);
  const std::vector<Tensor> rounded = gradients(DType::bf16);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    expect_close(rounded[i], exact[i], 1e-2);
  }
}

TEST(Scale, TakesStridedInputs) {
  const Tensor x = random_tensor({6, 5, 4}, 1).transpose(0, 2);
  const Tensor weight = random_tensor({6, 2}, 2).select(1, 0);
  expect_close(scale(x, weight), scale(x.clone(), weight.clone()), 0);
}

TEST(Scale, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              scale(Tensor::zeros({2, 3}), Tensor::zeros({2}));
            }),
            "scale: weight and bias must be [3] f32, not [2] f32");
  EXPECT_EQ(error_of([] {
              scale(Tensor::zeros({2, 3}), Tensor::zeros({3}), {}, Tensor::zeros({3}));
            }),
            "scale: the residual must be [2, 3] f32, not [3] f32");
}

}  // namespace
}  // namespace vitrail::test
