// Running sums, sums of segments, choices, and arithmetic of integers.
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/cumulative.h"
#include "vitrail/ops/math/segments.h"
#include "vitrail/ops/math/where.h"

namespace vitrail::test {
namespace {

constexpr const char* golden_sums = "ops/order.safetensors";

void expect_golden_sums(DType dtype, double tolerance) {
  for_each_case(
      "cumsum",
      [&](const Case& one) {
        const int dim = static_cast<int>(one.numbers("dim").front());
        expect_golden(one, {"x"}, {}, dtype, tolerance,
                      [&](const Operands& in) { return ops::cumsum(in.at("x"), dim); });
      },
      golden_sums);
  for_each_case(
      "where",
      [&](const Case& one) {
        expect_golden(one, {"a", "b"}, {}, dtype, tolerance, [&](const Operands& in) {
          return ops::where(ops::cast(one["condition"], DType::boolean), in.at("a"), in.at("b"));
        });
      },
      golden_sums);
}

TEST(SumsAndChoices, GivePyTorchsValuesAndGradients) { expect_golden_sums(DType::f32, 2e-6); }
TEST(SumsAndChoices, GiveThemInBf16) { expect_golden_sums(DType::bf16, 2e-2); }

TEST(Segments, GivePyTorchsValuesAndGradients) {
  const std::vector kinds = {ops::SegmentReduction::sum, ops::SegmentReduction::mean, ops::SegmentReduction::max};
  std::size_t i = 0;
  for_each_case(
      "segments",
      [&](const Case& one) {
        const ops::SegmentReduction kind = kinds.at(i++);
        expect_golden(one, {"x"}, {}, DType::f32, 2e-6,
                      [&](const Operands& in) { return ops::segment_reduce(in.at("x"), kind, one["offsets"]); });
      },
      golden_sums);
  EXPECT_EQ(i, kinds.size());
}

TEST(SumsAndChoices, HaveTheGradientsOfFiniteDifferences) {
  using Inputs = std::vector<Tensor>;
  const Tensor x = random_tensor({5, 3}, 1);
  check_gradients([](const Inputs& in) { return ops::cumsum(in[0], 0); }, {x});
  const Tensor condition = ops::cast(Tensor::from<std::int64_t>({1, 0, 1}, {3}), DType::boolean);
  check_gradients([&](const Inputs& in) { return ops::where(condition, in[0], in[1]); }, {x, random_tensor({5, 1}, 2)});
  const Tensor offsets = Tensor::from<std::int64_t>({0, 2, 5}, {3});
  for (const auto kind : {ops::SegmentReduction::sum, ops::SegmentReduction::mean, ops::SegmentReduction::max}) {
    check_gradients([&](const Inputs& in) { return ops::segment_reduce(in[0], kind, offsets); }, {x});
  }
}

TEST(Cumsum, AddsIntegersAsI64) {
  const Tensor y = ops::cumsum(Tensor::from<std::int32_t>({2147483647, 1, -5}, {3}), 0);
  EXPECT_EQ(y.dtype(), DType::i64);
  EXPECT_EQ(y.data<std::int64_t>()[1], 2147483648);
  EXPECT_EQ(y.data<std::int64_t>()[2], 2147483643);
  const Tensor truths = ops::cast(Tensor::from<std::int64_t>({1, 0, 1, 1}, {4}), DType::boolean);
  EXPECT_EQ(ops::cumsum(truths, 0).values(), (std::vector<float>{1, 1, 2, 3}));
}

// Sums of many small numbers lose nothing.
TEST(Cumsum, RunsInF64) {
  const Tensor y = ops::cumsum(Tensor::full({1'000'000}, 0.1), 0);
  EXPECT_NEAR(y.data<float>()[999'999], 1e5, 0.02);
}

TEST(Where, TakesEveryDtype) {
  const Tensor condition = ops::cast(Tensor::from<std::int64_t>({1, 0, 1}, {3}), DType::boolean);
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
    const Tensor y = ops::where(condition, Tensor::full({3}, 1, dtype), Tensor::zeros({2, 1}, dtype));
    EXPECT_EQ(y.values(), (std::vector<float>{1, 0, 1, 1, 0, 1})) << name_of(dtype);
  }
  EXPECT_EQ(error_of([&] { ops::where(Tensor::zeros({3}), condition, condition); }),
            "where() needs a condition of bool, not f32");
  EXPECT_EQ(error_of([&] { ops::where(condition, condition, Tensor::zeros({3})); }),
            "where() needs two operands of one dtype, not bool and f32: cast one of them");
}

TEST(Segments, SayWhatIsWrongWithTheirOffsets) {
  const auto error = [](const std::vector<std::int64_t>& offsets) {
    return error_of([&] {
      ops::segment_reduce(Tensor::zeros({4, 2}), ops::SegmentReduction::sum,
                          Tensor::from(offsets, {std::ssize(offsets)}));
    });
  };
  EXPECT_EQ(error({0, 3}), "segment_reduce(): the offsets of 4 rows go from 0 to 4, not from 0 to 3");
  EXPECT_EQ(error({0, 2, 2, 4}), "segment_reduce(): the segment 1 has no rows");
  EXPECT_EQ(error({0}), "segment_reduce() needs offsets [S + 1] i64, not [1] i64");
}

TEST(Integers, AreComputedAsInPyTorch) {
  const std::map<std::string, std::function<Tensor(const Tensor&, const Tensor&)>> functions = {
      {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"subtract", [](const Tensor& a, const Tensor& b) { return a - b; }},
      {"multiply", [](const Tensor& a, const Tensor& b) { return a * b; }},
      {"floor_divide", ops::floor_divide},
      {"remainder", ops::remainder},
      {"maximum", ops::maximum},
      {"minimum", ops::minimum}};
  for (const auto& [name, function] : functions) {
    for_each_case(
        "integers." + name,
        [&](const Case& one) {
          const Tensor y = function(one["a"], one["b"]);
          const Tensor expected = one["y"];
          ASSERT_EQ(y.dtype(), expected.dtype());
          ASSERT_EQ(y.shape(), expected.shape());
          EXPECT_EQ(std::memcmp(y.raw(), expected.raw(), expected.bytes()), 0);
        },
        golden_sums);
  }
}

TEST(Integers, SayWhatCannotBe) {
  const Tensor two = Tensor::full({3}, 2, DType::i64);
  EXPECT_EQ(error_of([&] { ops::floor_divide(two, Tensor::zeros({3}, DType::i64)); }),
            "an integer cannot be divided by zero");
  EXPECT_EQ(error_of([&] { ops::remainder(two, Tensor::full({3}, 2, DType::i32)); }),
            "remainder() needs two operands of i32 or two of i64, not i64 and i32: cast one of them");
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  const Tensor quotient =
      ops::floor_divide(Tensor::full({1}, 0, DType::i64) + Tensor::from<std::int64_t>({smallest}, {1}),
                        Tensor::full({1}, -1, DType::i64));
  EXPECT_EQ(quotient.data<std::int64_t>()[0], smallest);
}

}  // namespace
}  // namespace vitrail::test
