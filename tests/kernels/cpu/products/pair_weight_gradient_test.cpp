#include "vitrail/kernels/pair_weight_gradient.h"

#include <algorithm>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/products/tile_products.h"

namespace vitrail {
namespace {

// Small integers: every sum is exact, in any order.
Tensor numbers(const Shape& shape, std::int64_t seed) {
  Tensor x = Tensor::empty(shape, DType::bf16);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<bf16>()[i] = bf16(static_cast<float>((i * 37 + i / 11 + seed) % 9 - 4));
  }
  return x;
}

struct Size {
  std::int64_t rows, outputs, inputs;
};

class PairWeightGradients : public testing::TestWithParam<Size> {};

TEST_P(PairWeightGradients, IsTheSumOfProducts) {
  if (!kernels::has_pair_products()) {
    GTEST_SKIP() << "this CPU has no AVX512-BF16, or may not use it";
  }
  const auto [rows, outputs, inputs] = GetParam();
  const Tensor x = numbers({rows, inputs}, 1);
  const Tensor dy = numbers({rows, outputs}, 5);
  const Tensor dweight = Tensor::full({outputs, inputs}, 1000);
  const Tensor dbias = Tensor::full({outputs}, 1000);
  kernels::pair_weight_gradient(x, dy, dweight, dbias);

  std::vector<float> expected(static_cast<std::size_t>(outputs * inputs), 0);
  std::vector<float> expected_bias(static_cast<std::size_t>(outputs), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      const auto d = static_cast<float>(dy.data<bf16>()[r * outputs + o]);
      expected_bias[static_cast<std::size_t>(o)] += d;
      for (std::int64_t i = 0; i < inputs; ++i) {
        expected[static_cast<std::size_t>(o * inputs + i)] += d * static_cast<float>(x.data<bf16>()[r * inputs + i]);
      }
    }
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), dweight.data<float>()));
  EXPECT_TRUE(std::equal(expected_bias.begin(), expected_bias.end(), dbias.data<float>()));

  const Tensor alone = Tensor::full({outputs, inputs}, 1000);
  kernels::pair_weight_gradient(x, dy, alone, {});
  test::expect_close(alone, dweight, 0);
}

TEST(PairWeightGradient, IsTheSameForAnyNumberOfThreads) {
  if (!kernels::has_pair_products()) {
    GTEST_SKIP() << "this CPU has no AVX512-BF16, or may not use it";
  }
  const Tensor x = test::as(test::random_tensor({600, 130}, 1), DType::bf16);
  const Tensor dy = test::as(test::random_tensor({600, 301}, 2), DType::bf16);
  const int before = kernels::threads();
  std::vector<Tensor> dweight;
  std::vector<Tensor> dbias;
  for (const int count : {1, 2, 5}) {
    kernels::set_threads(count);
    dweight.push_back(Tensor::empty({301, 130}));
    dbias.push_back(Tensor::empty({301}));
    kernels::pair_weight_gradient(x, dy, dweight.back(), dbias.back());
    test::expect_close(dweight.back(), dweight.front(), 0);
    test::expect_close(dbias.back(), dbias.front(), 0);
  }
  kernels::set_threads(before);
}

// Odd rows, parts of vectors, of panels and of tiles, several chunks of rows, several blocks of outputs.
INSTANTIATE_TEST_SUITE_P(Sizes, PairWeightGradients,
                         testing::Values(Size{1, 1, 1}, Size{7, 5, 3}, Size{256, 16, 64}, Size{257, 49, 65},
                                         Size{513, 200, 100}, Size{300, 301, 16}, Size{512, 1030, 17},
                                         Size{520, 96, 130}, Size{64, 40, 600}, Size{20, 500, 600}),
                         [](const auto& test) {
                           const Size& size = test.param;
                           return fmt::format("{}x{}x{}", size.rows, size.outputs, size.inputs);
                         });

}  // namespace
}  // namespace vitrail
