#include "vitrail/ops/math/order.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/random.h"

namespace vitrail::test {
namespace {

constexpr const char* golden_orders = "ops/order.safetensors";

int as_int(std::int64_t number) { return static_cast<int>(number); }

void expect_golden_orders(DType dtype, double tolerance) {
  for_each_case(
      "sort",
      [&](const Case& one) {
        const std::vector<std::int64_t> settings = one.numbers("settings");
        expect_golden(one, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
          const ops::Ordered sorted = ops::sort(in.at("x"), as_int(settings[0]), settings[1] != 0);
          EXPECT_EQ(sorted.indices.values(), one["indices"].values()) << one.name();
          return sorted.values;
        });
      },
      golden_orders);
  for_each_case(
      "topk",
      [&](const Case& one) {
        if (dtype == DType::bf16 && one["x"].numel() > 256) {
          return;  // bf16 cannot tell all elements apart
        }
        const std::vector<std::int64_t> settings = one.numbers("settings");
        expect_golden(one, {"x"}, {}, dtype, tolerance, [&](const Operands& in) {
          const ops::Ordered best = ops::topk(in.at("x"), settings[0], as_int(settings[1]), settings[2] != 0);
          EXPECT_EQ(best.indices.values(), one["indices"].values()) << one.name();
          return best.values;
        });
      },
      golden_orders);
}

TEST(Order, GivesPyTorchsValuesIndicesAndGradients) { expect_golden_orders(DType::f32, 1e-7); }
TEST(Order, GivesThemInBf16) { expect_golden_orders(DType::bf16, 1e-2); }

TEST(Order, SortsEveryDtype) {
  const std::vector<std::int64_t> numbers = {5, -7, 100, 5, -128, 0, 127, 64, -7};
  for (const DType dtype : {DType::i8, DType::i32, DType::i64, DType::f32, DType::bf16}) {
    const Tensor x = ops::cast(Tensor::from(numbers, {9}), dtype);
    const ops::Ordered up = ops::sort(x);
    EXPECT_EQ(up.values.values(), (std::vector<float>{-128, -7, -7, 0, 5, 5, 64, 100, 127})) << name_of(dtype);
    EXPECT_EQ(up.indices.values(), (std::vector<float>{4, 1, 8, 5, 0, 3, 7, 2, 6}));
    EXPECT_EQ(up.values.dtype(), dtype);
    EXPECT_EQ(ops::topk(x, 3).indices.values(), (std::vector<float>{6, 2, 7}));
  }
  const Tensor large = Tensor::from<std::int64_t>({std::int64_t{1} << 40, -(std::int64_t{1} << 50), 3}, {3});
  EXPECT_EQ(ops::sort(large).indices.values(), (std::vector<float>{1, 2, 0}));
  const Tensor truths = ops::cast(Tensor::from<std::int64_t>({1, 0, 1}, {3}), DType::boolean);
  EXPECT_EQ(ops::sort(truths, 0, true).indices.values(), (std::vector<float>{0, 2, 1}));
}

// NaN is the largest, zeros of either sign are equal, and of equal elements the first comes first.
TEST(Order, KnowsNaNInfinityAndZeros) {
  const AllowNonFinite allow;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({0.0F, nan, -0.0F, infinity, -infinity, 0.0F, -nan}, {7});
  EXPECT_EQ(ops::sort(x).indices.values(), (std::vector<float>{4, 0, 2, 5, 3, 1, 6}));
  EXPECT_EQ(ops::sort(x, 0, true).indices.values(), (std::vector<float>{1, 6, 3, 0, 2, 5, 4}));
  EXPECT_EQ(ops::topk(x, 4).indices.values(), (std::vector<float>{1, 6, 3, 0}));
}

// Rows that are short or long, with few different values or many, by whichever way they are sorted.
TEST(Order, AgreesWithComparing) {
  for (const std::int64_t size : {1, 2, 1000, 5000}) {
    for (const int values : {3, 1 << 20}) {
      const Philox draws(3, static_cast<std::uint64_t>(size + values));
      std::vector<float> x;
      for (std::int64_t i = 0; i < size; ++i) {
        x.push_back(std::floor((draws.uniform(static_cast<std::uint64_t>(i)) - 0.5F) * static_cast<float>(values)));
      }
      std::vector<std::int64_t> expected(x.size());
      std::iota(expected.begin(), expected.end(), 0);
      std::ranges::stable_sort(expected, std::greater<>(),
                               [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; });
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{40}, size}) {
        const std::vector<std::int64_t> best = kernels::largest(x, k);
        EXPECT_EQ(best, std::vector(expected.begin(), expected.begin() + std::min(k, size))) << size << " " << k;
      }
    }
  }
}

// The first, the last, and every place of a vector of any CPU; NaN comes before all others only in descending order.
TEST(Order, FindsTheBestWhereverTheyLie) {
  const AllowNonFinite allow;
  for (const float best : {2.0F, -2.0F, std::numeric_limits<float>::quiet_NaN()}) {
    const bool descending = !(best < 0);
    for (std::int64_t place = 0; place < 101; ++place) {
      std::vector<float> x(101, 1);
      x[0] = descending ? 0.0F : 1.5F;
      x[static_cast<std::size_t>(place)] = best;
      const ops::Ordered found = ops::topk(Tensor::from(x, {101}), 2, 0, descending);
      const float second = place == 1 ? 2 : 1;
      EXPECT_EQ(found.indices.values(), (std::vector<float>{static_cast<float>(place), second})) << best;
    }
    const ops::Ordered least = ops::topk(Tensor::from(std::vector<float>(101, best), {101}), 3, 0, !descending);
    EXPECT_EQ(least.indices.values(), (std::vector<float>{0, 1, 2}));
  }
}

TEST(Order, HasTheGradientsOfFiniteDifferences) {
  const Tensor x = Tensor::from<float>({3, 1, 4, 1.5F, 5, 9, 2, 6, 5.5F, 3.5F, 8, 7}, {3, 4});
  check_gradients([](const std::vector<Tensor>& in) { return ops::sort(in[0], 0).values; }, {x});
  check_gradients([](const std::vector<Tensor>& in) { return ops::topk(in[0], 2).values; }, {x});
}

TEST(Order, SaysHowManyThereAre) {
  EXPECT_EQ(error_of([] {
              ops::topk(Tensor::zeros({2, 3}), 4);
            }),
            "topk(): 4 of the 3 elements along dimension -1 of [2, 3] are asked for");
  EXPECT_EQ(ops::topk(Tensor::zeros({2, 3}), 0).values.shape(), (Shape{2, 0}));
  EXPECT_EQ(ops::sort(Tensor::zeros({2, 0})).indices.shape(), (Shape{2, 0}));
}

}  // namespace
}  // namespace vitrail::test
