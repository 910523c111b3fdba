#include "vitrail/ops/images/conv.h"

#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {
namespace {

using ops::conv2d;
using ops::ConvOptions;

void expect_golden_conv(DType dtype, double tolerance) {
  for_each_case("conv", [&](const Case& one) {
    const auto n = one.numbers("options");
    const ConvOptions options{{n[0], n[1]}, {n[2], n[3]}, {n[4], n[5]}, n[6]};
    expect_golden(one, {"x"}, {"weight", "bias"}, dtype, tolerance,
                  [&](const Operands& in) { return conv2d(in.at("x"), in.at("weight"), in.at("bias"), options); });
  });
}

TEST(Conv2d, GivesPyTorchsValuesAndGradients) { expect_golden_conv(DType::f32, 1e-5); }
TEST(Conv2d, GivesThemInBf16) { expect_golden_conv(DType::bf16, 2e-2); }

TEST(Conv2d, HasTheGradientsOfFiniteDifferences) {
  const auto strided = [](const std::vector<Tensor>& in) {
    return conv2d(in[0], in[1], in[2], {.stride = {2, 1}, .padding = {1, 0}});
  };
  check_gradients(strided, {random_tensor({2, 3, 7, 6}, 1), random_tensor({4, 3, 3, 2}, 2), random_tensor({4}, 3)});
}

TEST(Conv2d, GivesTokensAsAView) {
  const Tensor y = conv2d(random_tensor({2, 3, 8, 8}, 1), random_tensor({5, 3, 4, 4}, 2), {}, {.stride = {4, 4}});
  EXPECT_TRUE(y.permute({0, 2, 3, 1}).is_contiguous());
}

TEST(Conv2d, TakesStridedAndChannelsLastImages) {
  const Tensor weight = random_tensor({6, 4, 3, 3}, 1);
  const Tensor last = random_tensor({2, 5, 7, 4}, 2).permute({0, 3, 1, 2});
  expect_close(conv2d(last, weight), conv2d(last.clone(), weight), 0);
  const Tensor cropped = random_tensor({2, 4, 9, 9}, 3).narrow(2, 1, 5).narrow(3, 2, 6);
  expect_close(conv2d(cropped, weight), conv2d(cropped.clone(), weight), 0);
  const ConvOptions patches{.stride = {3, 3}};
  expect_close(conv2d(cropped, weight, {}, patches), conv2d(cropped.clone(), weight, {}, patches), 0);
}

TEST(Conv2d, PacksItsWeightOnceUntilItIsTouched) {
  Tensor weight = random_tensor({8, 16, 3, 3}, 1);
  Tensor x = random_tensor({1, 16, 6, 6}, 2);
  autograd::require_grad(x);
  const auto step = [&] {
    const std::uint64_t before = kernels::packings();
    for (int i = 0; i < 3; ++i) {
      autograd::Tape tape;
      const Tensor y = conv2d(x, weight);
      tape.backward(y, Tensor::full(y.shape(), 1));
    }
    return kernels::packings() - before;
  };
  EXPECT_LE(step(), 2U);
  EXPECT_EQ(step(), 0U);
  weight.fill(0.25);
  weight.touch();
  expect_close(conv2d(x, weight), conv2d(x, weight.clone()), 0);
}

// What has arrived at x is added to in place; x itself and dy stay as they are.
TEST(Conv2d, AddsToTheGradientOfItsInput) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = ops::cast(random_tensor({2, 5, 7, 72}, 1), dtype).permute({0, 3, 1, 2});
    Tensor weight = random_tensor({72, 72, 1, 1}, 2, 0.1F);
    autograd::require_grad(x);
    autograd::require_grad(weight);
    const Tensor dy = ops::cast(random_tensor({2, 5, 7, 72}, 3), dtype).permute({0, 3, 1, 2});
    const auto gradient = [&](bool conv, bool rest, bool same) {
      autograd::zero_grad(x);
      autograd::Tape tape;
      const Tensor input = x * 1.0F;
      const Tensor y = conv ? conv2d(input, weight) : Tensor();
      const Tensor z = !rest || same ? input : input * 3.0F;
      tape.backward(conv && rest ? y + z : (conv ? y : z), dy);
      return autograd::grad(x);
    };
    const Tensor before = dy.clone();
    for (const bool same : {false, true}) {  // as the input itself, what has arrived is dy itself
      expect_close(gradient(true, true, same), gradient(true, false, same) + gradient(false, true, same),
                   dtype == DType::f32 ? 1e-6 : 2e-2);
      expect_close(dy, before, 0);
    }
  }
}

TEST(Conv2dActivated, IsConvolutionResidualAndActivation) {
  const Tensor bias = random_tensor({6}, 2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = ops::cast(random_tensor({2, 4, 9, 8}, 3), dtype);
    for (const std::int64_t kernel : {1, 3}) {
      for (const std::int64_t stride : {1, 2}) {
        const Tensor weight = random_tensor({6, 4, kernel, kernel}, 1);
        const ConvOptions options{.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
        const Tensor plain = conv2d(x, weight, bias, options);
        const Tensor residual = ops::cast(random_tensor(plain.shape(), 4), dtype);
        const auto expect_activated = [&](ops::Activation activation, const Tensor& rest) {
          const Tensor sum = rest.defined() ? plain + rest : plain;
          expect_close(ops::conv2d_activated(x, weight, bias, options, activation, rest),
                       ops::activate(sum, activation), dtype == DType::f32 ? 1e-6 : 2e-2);
        };
        for (const ops::Activation activation :
             {ops::Activation::identity, ops::Activation::relu, ops::Activation::silu}) {
          expect_activated(activation, {});
          expect_activated(activation, residual);
        }
      }
    }
  }
}

TEST(Conv2dActivated, KnowsGroups) {
  const ConvOptions options{.padding = {1, 1}, .groups = 2};
  const Tensor weight = random_tensor({6, 2, 3, 3}, 1);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = ops::cast(random_tensor({2, 4, 5, 7}, 3), dtype);
    const Tensor plain = conv2d(x, weight, {}, options);
    const Tensor residual = ops::cast(random_tensor(plain.shape(), 4), dtype);
    expect_close(ops::conv2d_activated(x, weight, {}, options, ops::Activation::relu, residual),
                 ops::relu(plain + residual), dtype == DType::f32 ? 1e-6 : 2e-2);
  }
}

TEST(Conv2dActivated, MayWriteOverAResidualThatIsMovedIn) {
  const Tensor bias = random_tensor({8}, 2);
  for (const std::int64_t kernel : {1, 3}) {
    const Tensor weight = random_tensor({8, 4, kernel, kernel}, 1);
    const ConvOptions options{.padding = {kernel / 2, kernel / 2}};
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = ops::cast(random_tensor({2, 4, 5, 7}, 3), dtype);
      Tensor residual = ops::cast(random_tensor({2, 5, 7, 8}, 4), dtype).permute({0, 3, 1, 2});
      const Tensor before = residual.clone();
      const Tensor expected = ops::relu(conv2d(x, weight, bias, options) + residual);
      const double tolerance = dtype == DType::f32 ? 1e-6 : 2e-2;
      for (const ops::Activation activation : {ops::Activation::relu, ops::Activation::silu}) {
        const Tensor kept = ops::conv2d_activated(x, weight, bias, options, activation, residual);
        expect_close(residual, before, 0);
        if (activation == ops::Activation::relu) {
          expect_close(kept, expected, tolerance);
        }
      }
      const void* const place = residual.raw();
      const Tensor y = ops::conv2d_activated(x, weight, bias, options, ops::Activation::relu, std::move(residual));
      expect_close(y, expected, tolerance);
      EXPECT_EQ(y.raw() == place, kernel > 1 || dtype == DType::f32);
    }
  }
}

TEST(Conv2d, TakesAnEmptyBatch) {
  Tensor weight = random_tensor({4, 3, 3, 3}, 1);
  autograd::require_grad(weight);
  for (const std::int64_t stride : {1, 3}) {
    autograd::zero_grad(weight);
    autograd::Tape tape;
    const Tensor y = conv2d(Tensor::empty({0, 3, 9, 9}), weight, {}, {.stride = {stride, stride}});
    EXPECT_EQ(y.shape(), (Shape{0, 4, (9 - 3) / stride + 1, (9 - 3) / stride + 1}));
    tape.backward(y, Tensor::empty(y.shape()));
    expect_close(autograd::grad(weight), Tensor::zeros(weight.shape()), 0);
  }
}

TEST(Conv2d, SaysWhatDoesNotFit) {
  const auto message = [](const Tensor& x, const Tensor& weight, const ConvOptions& options = {}) -> std::string {
    try {
      conv2d(x, weight, {}, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(Tensor::zeros({1, 4, 8, 8}), Tensor::zeros({6, 3, 3, 3})),
            "conv2d: x [1, 4, 8, 8] has 4 channels, but the weight [6, 3, 3, 3] in 1 groups takes 3");
  EXPECT_EQ(message(Tensor::zeros({1, 3, 2, 8}), Tensor::zeros({6, 3, 3, 3})),
            "conv2d: the kernel reaches over 3 pixels, but x [1, 3, 2, 8] with padding 0 has only 2");
  EXPECT_EQ(message(Tensor::zeros({1, 4, 8, 8}), Tensor::zeros({6, 2, 3, 3}), {.groups = 4}),
            "conv2d: the 6 output channels of the weight [6, 2, 3, 3] do not divide into 4 groups");
}

}  // namespace
}  // namespace vitrail::test
