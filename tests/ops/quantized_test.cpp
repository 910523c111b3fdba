#include "vitrail/ops/quantized.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/linear.h"

namespace vitrail::ops {
namespace {

using test::random_tensor;

TEST(QuantizedLinear, IsCloseToTheLinearMap) {
  const Tensor x = random_tensor({3, 50, 96}, 1);
  const Tensor weight = random_tensor({80, 96}, 2);
  const Tensor bias = random_tensor({80}, 3);
  const Tensor residual = random_tensor({3, 50, 80}, 4);
  QuantizedWeight small = quantize(weight);
  const Tensor wanted = linear(x, weight, bias, Activation::gelu, residual);
  EXPECT_LT(test::relative_error(linear(x, small, bias, Activation::gelu, residual), wanted), 2e-2);
  small.input_scale = Tensor::full({1}, 4.5F / 127);
  const double fixed = test::relative_error(linear(x, small, bias, Activation::gelu, residual), wanted);
  EXPECT_LT(fixed, 3e-2);
  EXPECT_GT(fixed, 1e-5) << "it is rounded";
}

TEST(QuantizedLinear, DoesNotMixRows) {
  // A large row does not cost the others their precision.
  const Tensor x = random_tensor({2, 64}, 1);
  const QuantizedWeight weight = quantize(random_tensor({32, 64}, 2));
  const Tensor before = linear(x, weight).narrow(0, 1, 1).clone();
  x.narrow(0, 0, 1).fill(1000);
  test::expect_close(linear(x, weight).narrow(0, 1, 1), before, 0);
}

TEST(QuantizedLinear, HasNoGradient) {
  Tensor x = random_tensor({2, 64}, 1);
  autograd::require_grad(x);
  const QuantizedWeight weight = quantize(random_tensor({32, 64}, 2));
  const autograd::Tape tape;
  EXPECT_NE(test::error_of([&] { linear(x, weight); }).find("has no gradient"), std::string::npos);
}

TEST(QuantizedLinear, SaysWhatDoesNotFit) {
  const QuantizedWeight weight = quantize(random_tensor({32, 64}, 2));
  EXPECT_EQ(test::error_of([&] {
              linear(random_tensor({2, 63}, 1), weight);
            }),
            "linear in int8: x [2, 63] does not fit the weight [32, 64]");
}

}  // namespace
}  // namespace vitrail::ops
