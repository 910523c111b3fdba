#include "vitrail/kernels/few_rows.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/targets.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/int8.h"

namespace vitrail::kernels {
namespace {

using test::as;
using test::expect_close;
using test::random_tensor;

Tensor random_int8(const Shape& shape, std::uint64_t seed) {
  const Tensor x = random_tensor(shape, seed);
  const Tensor result = Tensor::empty(shape, DType::i8);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    result.data<std::int8_t>()[i] = static_cast<std::int8_t>(std::lround(std::fmod(x.data<float>()[i] * 1000, 128.0F)));
  }
  return result;
}

// a · weightᵀ, in f64.
Tensor product(const Tensor& a, const Tensor& weight) {
  const std::vector<float> left = a.values();
  const std::vector<float> right = weight.values();
  const Tensor result = Tensor::empty({a.size(0), weight.size(0)});
  const std::int64_t depth = a.size(1);
  for (std::int64_t m = 0; m < a.size(0); ++m) {
    for (std::int64_t n = 0; n < weight.size(0); ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += static_cast<double>(left[static_cast<std::size_t>(m * depth + k)]) *
               right[static_cast<std::size_t>(n * depth + k)];
      }
      result.data<float>()[m * weight.size(0) + n] = static_cast<float>(sum);
    }
  }
  return result;
}

TEST(FewRows, AreProductsWithTheWeightAsItLies) {
  test::for_each_target([](const std::string& target) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const auto& [rows, depth, outputs] :
           {std::tuple{1, 259, 301}, {3, 64, 1030}, {6, 515, 130}, {16, 128, 515}}) {
        const Tensor a = as(random_tensor({rows, depth}, 1), dtype);
        const Tensor weight = as(random_tensor({outputs, depth}, 2), dtype);
        const Tensor c = Tensor::empty({rows, outputs});
        ASSERT_TRUE(fits_few_rows(a, weight.transpose(0, 1), {}, c));
        matmul_few_rows(a, weight.transpose(0, 1), {}, c);
        expect_close(c, product(a, weight), 1e-5, target);
        // A row does not depend on the others.
        const Tensor alone = Tensor::empty({1, outputs});
        matmul_few_rows(a.narrow(0, rows - 1, 1), weight.transpose(0, 1), {}, alone);
        expect_close(alone, c.narrow(0, rows - 1, 1), 0, target);
      }
    }
  });
}

TEST(FewRows, AddWhatTheEpilogueSays) {
  constexpr std::int64_t rows = 2, depth = 130, outputs = 300;
  const Tensor bias = random_tensor({outputs}, 3);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor a = as(random_tensor({rows, depth}, 1), dtype);
    const Tensor weight = as(random_tensor({outputs, depth}, 2), dtype);
    const Tensor residual = as(random_tensor({rows, outputs}, 4), dtype);
    const Tensor sums = product(a, weight);
    const Tensor wanted = Tensor::empty({rows, outputs});
    for (std::int64_t i = 0; i < wanted.numel(); ++i) {
      const float x = sums.data<float>()[i] + bias.data<float>()[i % outputs];
      const float silu = x / (1 + std::exp(-x));
      wanted.data<float>()[i] = std::max(0.0F, silu + residual.values()[static_cast<std::size_t>(i)]);
    }
    const Epilogue epilogue{bias, Activation::silu, residual, Activation::relu};
    const Tensor c = Tensor::empty({rows, outputs}, dtype);
    // By the function that chooses this way.
    matmul_packed(a, weight.transpose(0, 1), epilogue, c);
    expect_close(c, wanted, dtype == DType::f32 ? 1e-5 : 5e-3);
    const Tensor in_place = residual.clone();
    matmul_few_rows(a, weight.transpose(0, 1), {.bias = {}, .residual = in_place}, in_place);
    for (std::int64_t i = 0; i < wanted.numel(); ++i) {
      wanted.data<float>()[i] = sums.data<float>()[i] + residual.values()[static_cast<std::size_t>(i)];
    }
    expect_close(in_place, wanted, dtype == DType::f32 ? 1e-5 : 5e-3);
  }
}

TEST(FewRows, FitOnlyWhatIsLargeAndDense) {
  const Tensor weight = Tensor::zeros({256, 256});
  const auto fits = [&](const Tensor& a, const Tensor& w) {
    return fits_few_rows(a, w, {}, Tensor::empty({a.size(0), w.size(1)}, a.dtype()));
  };
  EXPECT_TRUE(fits(Tensor::zeros({16, 256}), weight.transpose(0, 1)));
  EXPECT_FALSE(fits(Tensor::zeros({17, 256}), weight.transpose(0, 1)));
  EXPECT_FALSE(fits(Tensor::zeros({1, 256}), weight));
  EXPECT_FALSE(fits(Tensor::zeros({1, 256}, DType::bf16), weight.transpose(0, 1)));
  EXPECT_FALSE(fits(Tensor::zeros({1, 256}), weight.narrow(0, 0, 32).transpose(0, 1)));
  EXPECT_FALSE(fits(Tensor::zeros({16, 512}).narrow(1, 0, 256), weight.transpose(0, 1)));
}

TEST(FewRows, InInt8AreExact) {
  for (const auto& [rows, depth, outputs] : {std::tuple{1, 259, 301}, {3, 64, 1030}, {6, 515, 130}, {16, 129, 515}}) {
    const Tensor a = random_int8({rows, depth}, 1);
    const Tensor weight = random_int8({outputs, depth}, 2);
    a.narrow(0, 0, 1).fill(-128);
    weight.narrow(0, 1, 1).fill(-128);
    const Tensor sums = Tensor::empty({rows, outputs}, DType::i32);
    int8_sums(a, weight, sums);
    EXPECT_EQ(sums.values(), product(a, weight).values()) << rows << " " << depth << " " << outputs;
  }
}

// Nor is a weight that is held in fewer bits packed for many rows, where that would be for one use.
TEST(ManyRows, OfHeldWeightsPackNothingForOneUse) {
  constexpr std::int64_t rows = 40, depth = 130, outputs = 301;
  const TransientPacking transient;
  const std::uint64_t before = packings();
  const Tensor a = as(random_tensor({rows, depth}, 1), DType::bf16);
  const Tensor weight = as(random_tensor({outputs, depth}, 2), DType::bf16);
  const Tensor bias = random_tensor({outputs}, 3);
  const Tensor c = Tensor::empty({rows, outputs});
  const Tensor without = Tensor::empty({rows, outputs});
  matmul_packed(a, weight.transpose(0, 1), {}, without);
  expect_close(without, product(a, weight), 1e-5);
  matmul_packed(a, weight.transpose(0, 1), {.bias = bias}, c);
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    without.data<float>()[i] += bias.data<float>()[i % outputs];
  }
  expect_close(c, without, 1e-5);
  const Tensor q = random_int8({rows, depth}, 1);
  const Tensor small = random_int8({outputs, depth}, 2);
  const Tensor sums = Tensor::empty({rows, outputs}, DType::i32);
  int8_sums(q, small, sums);
  EXPECT_EQ(sums.values(), product(q, small).values());
  if (has_int8() && has_bf16()) {
    EXPECT_EQ(packings(), before);
  }
}

}  // namespace
}  // namespace vitrail::kernels
