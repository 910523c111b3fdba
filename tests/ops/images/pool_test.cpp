#include <cmath>

#include "tests/ops/golden_cases.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/images/conv.h"

namespace vitrail::test {
namespace {

using ops::PoolOptions;

void expect_golden_pool(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/gemm.safetensors");
  for_each_case("pool", [&](const Case& one) {
    const auto n = one.numbers("options");
    const PoolOptions options{{n[0], n[1]}, {n[2], n[3]}, {n[4], n[5]}, n[6] != 0, n[7] != 0};
    expect_golden(Case(file, one.name() + ".max"), {"x"}, {}, dtype, tolerance,
                  [&](const Operands& in) { return ops::max_pool2d(in.at("x"), options); });
    expect_golden(Case(file, one.name() + ".avg"), {"x"}, {}, dtype, tolerance,
                  [&](const Operands& in) { return ops::avg_pool2d(in.at("x"), options); });
  });
  for_each_case("adaptive", [&](const Case& one) {
    const auto n = one.numbers("options");
    expect_golden(one, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
      return ops::adaptive_avg_pool2d(in.at("x"), {n[0], n[1]});
    });
  });
}

TEST(Pooling, GivesPyTorchsValuesAndGradients) { expect_golden_pool(DType::f32, 1e-6); }
TEST(Pooling, GivesThemInBf16) { expect_golden_pool(DType::bf16, 2e-2); }

TEST(Pooling, WorksOnManyChannels) {  // more than one block of them, and not a multiple
  const Tensor x = random_tensor({2, 131, 4, 4}, 1);
  const PoolOptions options{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  const auto each = [&](const auto& pool) {
    const Tensor all = pool(x);
    for (const std::int64_t channel : {0, 63, 64, 130}) {
      expect_close(all.narrow(1, channel, 1), pool(x.narrow(1, channel, 1)), 0);
    }
  };
  each([&](const Tensor& t) { return ops::max_pool2d(t, options); });
  each([&](const Tensor& t) { return ops::avg_pool2d(t, options); });
  check_gradients([&](const std::vector<Tensor>& in) { return ops::avg_pool2d(in[0], options); }, {x});
  each([&](const Tensor& t) {  // the gradient of the maximum
    Tensor in = t.clone();
    autograd::require_grad(in);
    autograd::Tape tape;
    const Tensor y = ops::max_pool2d(in, options);
    tape.backward(y, Tensor::full(y.shape(), 1));
    return autograd::grad(in);
  });
}

TEST(Pooling, GivesGradientsToEveryWindow) {  // with pixels between them, and windows that the border cuts
  Tensor x = random_tensor({2, 67, 8, 9}, 1);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = static_cast<float>(i % 72 * 37 % 73) / 4;  // in an image, all far apart
  }
  for (const PoolOptions& options : {PoolOptions{.kernel = {2, 2}, .stride = {3, 3}},
                                     PoolOptions{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}}) {
    check_gradients([&](const std::vector<Tensor>& in) { return ops::max_pool2d(in[0], options); }, {x});
  }
}

TEST(Pooling, LetsNanThrough) {
  const AllowNonFinite allow;
  Tensor x = random_tensor({1, 1, 4, 4}, 1);
  x.data<float>()[5] = NAN;
  EXPECT_TRUE(std::isnan(ops::max_pool2d(x, {}).values().front()));
}

TEST(Pooling, TakesAnEmptyBatch) {
  EXPECT_EQ(ops::max_pool2d(Tensor::empty({0, 3, 4, 4}), {}).shape(), (Shape{0, 3, 2, 2}));
  EXPECT_EQ(ops::adaptive_avg_pool2d(Tensor::empty({0, 3, 4, 4}), {1, 1}).shape(), (Shape{0, 3, 1, 1}));
}

TEST(Pooling, SaysWhatDoesNotFit) {
  EXPECT_THROW(ops::max_pool2d(Tensor::zeros({3, 4, 4}), {}), Error);
  EXPECT_THROW(ops::max_pool2d(Tensor::zeros({1, 3, 1, 4}), {}), Error);
  EXPECT_THROW(ops::avg_pool2d(Tensor::zeros({1, 3, 4, 4}), {.padding = {2, 0}}), Error);
  EXPECT_THROW(ops::adaptive_avg_pool2d(Tensor::zeros({1, 3, 4, 4}), {0, 1}), Error);
}

}  // namespace
}  // namespace vitrail::test
