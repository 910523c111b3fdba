#include "vitrail/ops/math/reduce.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::test {
namespace {

using Reduction = std::function<Tensor(const Tensor&, const std::vector<int>&, bool)>;

const std::map<std::string, Reduction> reductions = {
    {"sum", ops::sum},
    {"mean", ops::mean},
    {"variance", [](const Tensor& x, const std::vector<int>& dims, bool keep) { return ops::variance(x, dims, keep); }},
    {"biased_variance",
     [](const Tensor& x, const std::vector<int>& dims, bool keep) { return ops::variance(x, dims, keep, false); }},
    {"amax", ops::amax},
    {"amin", ops::amin}};

std::vector<int> dims_of(const Case& one) {
  std::vector<int> dims;
  for (const std::int64_t dim : one.numbers("dims")) {
    dims.push_back(static_cast<int>(dim));
  }
  return dims;
}

void expect_golden_reductions(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/reduce.safetensors");
  for (const auto& [name, function] : reductions) {
    for (int i = 0; i < 11; ++i) {
      const Case one(file, name + "." + std::to_string(i));
      ASSERT_TRUE(one.exists()) << one.name();
      const bool keep = one.numbers("keep").front() != 0;
      expect_golden(one, {"x"}, {}, dtype, tolerance,
                    [&](const Operands& in) { return function(in.at("x"), dims_of(one), keep); });
    }
  }
}

TEST(Reduce, GivesPyTorchsValuesAndGradients) { expect_golden_reductions(DType::f32, 2e-6); }
TEST(Reduce, GivesThemInBf16) { expect_golden_reductions(DType::bf16, 2e-2); }

TEST(Reduce, FindsTheFirstOfTheLargest) {
  const io::Safetensors file = golden("ops/reduce.safetensors");
  for (int i = 0; i < 3; ++i) {
    const Case one(file, "argmax." + std::to_string(i));
    const int dim = dims_of(one).front();
    for (const Tensor& x : {one["x"], as(one["x"], DType::bf16), one["x"].transpose(0, 2).clone().transpose(0, 2)}) {
      EXPECT_EQ(ops::argmax(x, dim).values(), one["y"].values()) << one.name();
      EXPECT_EQ(ops::argmax(x, dim, true).shape(), x.shape().with(dim, 1));
    }
  }
  EXPECT_EQ(ops::argmax(Tensor::from(std::vector<std::int64_t>{3, 9, 9}, {3}), 0).values().front(), 1);
}

TEST(Reduce, HasTheGradientsOfFiniteDifferences) {
  for (const auto& [name, function] : reductions) {
    SCOPED_TRACE(name);
    check_gradients(
        [&](const std::vector<Tensor>& in) {
          return function(in[0], {0, 2}, false);
        },
        {random_tensor({3, 5, 17}, 3)}, 5e-3, 2e-3);
  }
}

// The sum over `dims` in double precision.
std::vector<double> plain_sum(const Tensor& x, const std::vector<int>& dims) {
  Shape kept = x.shape();
  for (const int dim : dims) {
    kept[dim] = 1;
  }
  const Shape steps = kept.contiguous_strides();
  std::vector<double> sums(static_cast<std::size_t>(kept.numel()));
  const std::vector<float> values = x.values();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t place = 0;
    for (int d = x.rank() - 1; d >= 0; --d) {
      place += kept[d] == 1 ? 0 : rest % x.size(d) * steps[d];
      rest /= x.size(d);
    }
    sums[static_cast<std::size_t>(place)] += static_cast<double>(values[static_cast<std::size_t>(i)]);
  }
  return sums;
}

// Any dimensions of tensors in any layout, at sizes at which there are parts, blocks and threads.
TEST(Reduce, SumsAnyDimensionsOfAnyLayout) {
  const std::vector<std::vector<int>> choices = {{0},    {1},    {2},    {3},       {0, 1},       {0, 2},    {0, 3},
                                                 {1, 2}, {1, 3}, {2, 3}, {0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3}, {0, 2, 3}};
  for (const Shape& shape : {Shape{5, 65, 3, 192}, Shape{2, 1300, 7, 9}, Shape{3, 2, 11, 2100}}) {
    const Tensor x = random_tensor(shape, 4);
    const Tensor permuted = x.permute({2, 0, 3, 1});
    const Tensor part = x.narrow(3, 1, shape[3] - 2);
    const Tensor repeated = x.narrow(0, 0, 1).expand(shape);
    for (const Tensor& view : {x, permuted, part, repeated}) {
      for (const auto& dims : choices) {
        SCOPED_TRACE(shape.str() + " as " + view.shape().str() + ", dims " + testing::PrintToString(dims));
        const std::vector<float> actual = ops::sum(view, dims).values();
        const std::vector<double> expected = plain_sum(view, dims);
        ASSERT_EQ(actual.size(), expected.size());
        double error = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
          error = std::max(error, std::abs(static_cast<double>(actual[i]) - expected[i]));
        }
        EXPECT_LT(error, 1e-3);
      }
    }
  }
}

TEST(Reduce, SumsMillionsWithoutLosingPrecision) {
  const Tensor x = Tensor::full({3000000}, 0.1F);
  EXPECT_NEAR(ops::sum(x).item(), 300000, 2);
  EXPECT_NEAR(ops::sum(x.reshape({1000000, 3}), {0}).values()[2], 100000.0F, 0.5);
  EXPECT_NEAR(ops::mean(x).item(), 0.1, 1e-6);
}

TEST(Reduce, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor x = random_tensor({64, 65, 192}, 5);
  const int threads = kernels::threads();
  for (const std::vector<int>& dims : {std::vector<int>{}, {0, 1}, {2}, {1}}) {
    kernels::set_threads(1);
    const std::vector<float> one = ops::sum(x, dims).values();
    kernels::set_threads(2);
    EXPECT_EQ(ops::sum(x, dims).values(), one);
    kernels::set_threads(threads);
  }
}

TEST(Reduce, PassesNaNOn) {
  const AllowNonFinite allow;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t place : {0, 5, 36, 44}) {
    Tensor x = random_tensor({3, 45}, 6);
    x.data<float>()[place] = nan;
    for (const auto& [name, function] : reductions) {
      EXPECT_TRUE(std::isnan(function(x, {1}, false).values()[0])) << name;
      EXPECT_FALSE(std::isnan(function(x, {1}, false).values()[1])) << name;
      EXPECT_TRUE(std::isnan(function(x, {0}, false).values()[static_cast<std::size_t>(place)])) << name;
    }
    EXPECT_EQ(ops::argmax(x, 1).values()[0], static_cast<float>(place));
  }
}

TEST(Reduce, WorksOnNothingAndOnOneNumber) {
  const AllowNonFinite allow;
  const Tensor nothing = Tensor::empty({3, 0, 2});
  EXPECT_THAT(ops::sum(nothing, {1}).values(), testing::ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ops::sum(nothing, {0}).shape(), (Shape{0, 2}));
  EXPECT_THAT(ops::mean(nothing, {1}).values(), testing::Each(testing::IsNan()));
  EXPECT_EQ(ops::sum(Tensor::scalar(3)).item(), 3);
  EXPECT_EQ(ops::amax(Tensor::scalar(3), {}, true).shape(), Shape{});
  EXPECT_THAT(ops::variance(Tensor::scalar(3)).values(), testing::Each(testing::IsNan()));
}

TEST(Reduce, SaysWhatIsWrong) {
  const Tensor x = Tensor::full({2, 0, 3}, 1);
  EXPECT_EQ(error_of([&] { ops::sum(x, {0, -3}); }), "sum() names dimension 0 of [2, 0, 3] twice");
  EXPECT_EQ(error_of([&] { ops::mean(x, {3}); }), "dimension 3 of the shape [2, 0, 3] does not exist");
  EXPECT_EQ(error_of([&] { ops::amax(x, {1}); }), "amax() over no elements of [2, 0, 3] has no result");
  EXPECT_EQ(error_of([&] { ops::argmax(x, 1); }), "argmax() along the empty dimension 1 of [2, 0, 3] has no result");
  EXPECT_EQ(error_of([] { ops::sum(Tensor::zeros({2}, DType::u8)); }), "sum() works on f32 and bf16, not on u8");
}

}  // namespace
}  // namespace vitrail::test
