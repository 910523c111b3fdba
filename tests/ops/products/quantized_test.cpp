#include "vitrail/ops/products/quantized.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/products/linear.h"

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

TEST(QuantizedLinear, PassesNanOn) {
  const test::AllowNonFinite allow;
  const QuantizedWeight weight = quantize(random_tensor({32, 64}, 2));
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t place : {0, 20, 63}) {
      const Tensor x = random_tensor({3, 64}, 1);
      x.data<float>()[64 + place] = odd;
      const std::vector<float> y = linear(x, weight).values();
      EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(y[95]));
      EXPECT_TRUE(std::isnan(y[32]) && std::isnan(y[63])) << place;
    }
  }
  EXPECT_EQ(linear(Tensor::full({1, 64}, 1e-41), weight).values()[0], 0) << "as small as a row of zeros";
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
            "linear: x [2, 63] has 63 features, but the weight [32, 64] takes 64");
  EXPECT_EQ(test::error_of([&] {
              linear(random_tensor({2, 64}, 1), weight, random_tensor({31}, 2));
            }),
            "linear: the bias must be [32] f32, not [31] f32");
}

}  // namespace
}  // namespace vitrail::ops
