#include "vitrail/ops/products/mix_tokens.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::test {
namespace {

using ops::Activation;
using ops::mix_tokens;

// linear() between two transpositions.
Tensor by_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                 const Tensor& residual) {
  const Tensor y = ops::transpose(ops::linear(ops::transpose(x, -1, -2), weight, bias, activation), -1, -2);
  return residual.defined() ? y + residual : y;
}

struct Result {
  Tensor y;
  std::vector<Tensor> gradients;
};

template <class Function>
Result run(const Function& function, std::vector<Tensor> inputs, Activation activation, DType dtype) {
  inputs[0] = ops::cast(inputs[0], dtype).clone();
  inputs[3] = inputs[3].defined() ? ops::cast(inputs[3], dtype).clone() : Tensor();
  for (Tensor& input : inputs) {
    if (input.defined()) {
      input = input.clone();
      autograd::require_grad(input);
    }
  }
  autograd::Tape tape;
  Result result;
  result.y = function(inputs[0], inputs[1], inputs[2], activation, inputs[3]);
  tape.backward(result.y, ops::cast(random_tensor(result.y.shape(), 9), dtype));
  for (const Tensor& input : inputs) {
    if (input.defined()) {
      result.gradients.push_back(autograd::grad(input));
    }
  }
  return result;
}

TEST(MixTokens, IsLinearBetweenTwoTranspositions) {
  struct Case {
    Shape x;
    std::int64_t out;
    bool bias;
    bool residual;
    Activation activation;
  };
  const std::vector<Case> cases = {
      {{2, 49, 24}, 31, true, true, Activation::identity}, {{19, 16, 40}, 16, true, false, Activation::gelu},
      {{33, 7, 5}, 12, false, true, Activation::silu},     {{2, 3, 9, 17}, 4, true, true, Activation::gelu},
      {{1, 1, 1}, 1, true, true, Activation::identity},    {{20, 10}, 3, true, false, Activation::relu},
      {{5, 1, 8}, 6, true, true, Activation::identity},    {{5, 6, 1}, 1, true, false, Activation::identity}};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double tolerance = dtype == DType::f32 ? 1e-5 : 2e-2;
    for (const Case& one : cases) {
      const Shape out = one.x.with(-2, one.out);
      const std::vector<Tensor> inputs = {random_tensor(one.x, 1), random_tensor({one.out, one.x[-2]}, 2, 0.3F),
                                          one.bias ? random_tensor({one.out}, 3) : Tensor(),
                                          one.residual ? random_tensor(out, 4) : Tensor()};
      const Result got = run(mix_tokens, inputs, one.activation, dtype);
      const Result wanted = run(by_linear, inputs, one.activation, dtype);
      EXPECT_TRUE(got.y.is_contiguous());
      expect_close(got.y, wanted.y, tolerance, fmt::format("{}", one.x));
      ASSERT_EQ(got.gradients.size(), wanted.gradients.size());
      for (std::size_t i = 0; i < got.gradients.size(); ++i) {
        expect_close(got.gradients[i], wanted.gradients[i], tolerance, fmt::format("{}: gradient {}", one.x, i));
      }
      // Without a tape all happens in one product.
      const Tensor residual = inputs[3].defined() ? ops::cast(inputs[3], dtype) : Tensor();
      expect_close(mix_tokens(ops::cast(inputs[0], dtype), inputs[1], inputs[2], one.activation, residual), wanted.y,
                   tolerance, fmt::format("{}, without a tape", one.x));
    }
  }
}

TEST(MixTokens, HasTheGradientsOfFiniteDifferences) {
  check_gradients(
      [](const std::vector<Tensor>& in) { return mix_tokens(in[0], in[1], in[2], Activation::identity, in[3]); },
      {random_tensor({3, 7, 5}, 1), random_tensor({6, 7}, 2), random_tensor({6}, 3), random_tensor({3, 6, 5}, 4)});
}

TEST(MixTokens, TakesStridedTokensAndSeesTouchedWeights) {
  const Tensor x = random_tensor({2, 9, 12}, 1);
  const Tensor weight = random_tensor({4, 9}, 2);
  expect_close(mix_tokens(x.narrow(2, 3, 7), weight), mix_tokens(x.narrow(2, 3, 7).clone(), weight), 0);
  const Tensor y = ops::cast(x, DType::bf16);
  mix_tokens(y, weight);
  weight.fill(0.5);
  weight.touch();
  expect_close(mix_tokens(y, weight), mix_tokens(y, weight.clone()), 0);
}

TEST(MixTokens, TakesNoSamplesAndNoTokens) {
  EXPECT_EQ(mix_tokens(Tensor::empty({0, 3, 4}), random_tensor({2, 3})).shape(), (Shape{0, 2, 4}));
  const Tensor bias = random_tensor({2}, 1);
  expect_close(mix_tokens(Tensor::empty({5, 0, 4}), Tensor::empty({2, 0}), bias),
               bias.reshape({2, 1}).expand({5, 2, 4}).clone(), 0);
}

TEST(MixTokens, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              mix_tokens(Tensor::zeros({2, 5, 3}), Tensor::zeros({4, 6}));
            }),
            "mix_tokens: x [2, 5, 3] must be [..., 6, D], as many tokens as the weight [4, 6] takes");
  EXPECT_EQ(error_of([] {
              mix_tokens(Tensor::zeros({2, 6, 3}), Tensor::zeros({4, 6}), Tensor::zeros({6}));
            }),
            "mix_tokens: the bias must be [4] f32, not [6] f32");
  EXPECT_EQ(
      error_of([] {
        mix_tokens(Tensor::zeros({2, 6, 3}), Tensor::zeros({4, 6}), {}, Activation::identity, Tensor::zeros({2, 6, 3}));
      }),
      "mix_tokens: the residual must be [2, 4, 3] f32, not [2, 6, 3] f32");
}

}  // namespace
}  // namespace vitrail::test
