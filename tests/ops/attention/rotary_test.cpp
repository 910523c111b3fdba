#include "vitrail/ops/attention/rotary.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail {
namespace {

using ops::RotaryPairs;
using ops::rotation;
using test::expect_close;
using test::random_tensor;
using Inputs = std::vector<Tensor>;

// The equation, element by element, in double.
std::vector<float> turned(const Tensor& x, const Tensor& angles, RotaryPairs pairs, std::int64_t prefix) {
  const std::int64_t heads = x.size(1);
  const std::int64_t tokens = x.size(2);
  const std::int64_t width = x.size(3);
  const std::vector<float> in = x.values();
  const std::vector<float> theta = angles.values();
  std::vector<float> out = in;
  for (std::int64_t row = 0; row < x.size(0) * heads * tokens; ++row) {
    const std::int64_t n = row % tokens - prefix;
    const std::int64_t head = angles.rank() == 3 ? row / tokens % heads : 0;
    for (std::int64_t i = 0; n >= 0 && i < width / 2; ++i) {
      const auto angle =
          static_cast<double>(theta[static_cast<std::size_t>((head * angles.size(-2) + n) * width / 2 + i)]);
      const auto first = static_cast<std::size_t>(row * width + (pairs == RotaryPairs::halves ? i : 2 * i));
      const auto second = first + static_cast<std::size_t>(pairs == RotaryPairs::halves ? width / 2 : 1);
      out[first] = static_cast<float>(in[first] * std::cos(angle) - in[second] * std::sin(angle));
      out[second] = static_cast<float>(in[first] * std::sin(angle) + in[second] * std::cos(angle));
    }
  }
  return out;
}

TEST(Rotate, TurnsPairsByTheirAngles) {
  for (const std::int64_t width : {2, 6, 16, 40, 64, 66}) {
    for (const RotaryPairs pairs : {RotaryPairs::adjacent, RotaryPairs::halves}) {
      for (const std::int64_t prefix : {0, 2}) {
        const Tensor x = random_tensor({2, 3, prefix + 5, width});
        for (const Tensor& angles : {random_tensor({5, width / 2}, 2), random_tensor({3, 5, width / 2}, 3)}) {
          const Tensor expected = Tensor::from(turned(x, angles, pairs, prefix), x.shape());
          expect_close(ops::rotate(x, rotation(angles, pairs, prefix)), expected, 1e-6);
          const Tensor strided = x.permute({2, 0, 3, 1}).contiguous().permute({1, 3, 0, 2});
          expect_close(ops::rotate(strided, rotation(angles, pairs, prefix)), expected, 1e-6);
        }
      }
    }
  }
}

TEST(Rotate, KeepsBf16AndRoundsOnce) {
  const Tensor x = ops::cast(random_tensor({2, 3, 7, 24}), DType::bf16);
  const Tensor angles = random_tensor({7, 12}, 2);
  const Tensor y = ops::rotate(x, rotation(angles));
  ASSERT_EQ(y.dtype(), DType::bf16);
  const Tensor exact = ops::rotate(ops::cast(x, DType::f32), rotation(angles));
  expect_close(y, ops::cast(exact, DType::bf16), 1e-3);
}

TEST(Rotate, PackedTurnsQueriesAndKeysAndLeavesValues) {
  const Tensor qkv = random_tensor({2, 6, 3, 2, 8});
  const ops::Rotation turn = rotation(random_tensor({2, 5, 4}, 2), RotaryPairs::adjacent, 1);
  const Tensor y = ops::rotate_packed(qkv, turn);
  for (const std::int64_t part : {0, 1}) {
    expect_close(y.select(2, part).permute({0, 2, 1, 3}), ops::rotate(qkv.select(2, part).permute({0, 2, 1, 3}), turn),
                 0);
  }
  expect_close(y.select(2, 2), qkv.select(2, 2), 0);
}

// Relative positions: with angles proportional to the position, q · k depends on the offset alone.
TEST(Rotate, MakesScoresOfTheOffsetAlone) {
  constexpr std::int64_t length = 12;
  constexpr std::int64_t width = 16;
  const Tensor q = random_tensor({1, 1, 1, width}).expand({1, 1, length, width});
  const Tensor k = random_tensor({1, 1, 1, width}, 2).expand({1, 1, length, width});
  Tensor angles = Tensor::empty({length, width / 2});
  for (std::int64_t n = 0; n < length; ++n) {
    for (std::int64_t i = 0; i < width / 2; ++i) {
      angles.data<float>()[n * width / 2 + i] = static_cast<float>(static_cast<double>(n) * std::pow(100.0, -i / 8.0));
    }
  }
  const std::vector<float> a = ops::rotate(q, rotation(angles)).values();
  const std::vector<float> b = ops::rotate(k, rotation(angles)).values();
  const auto score = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      sum += static_cast<double>(a[static_cast<std::size_t>(i * width + c)]) *
             static_cast<double>(b[static_cast<std::size_t>(j * width + c)]);
    }
    return sum;
  };
  for (std::int64_t offset = -5; offset <= 5; ++offset) {
    for (std::int64_t i = 6; i < length - 5; ++i) {
      EXPECT_NEAR(score(i, i - offset), score(5, 5 - offset), 1e-4) << offset;
    }
  }
  EXPECT_GT(std::abs(score(5, 5) - score(5, 3)), 1e-2);
}

TEST(Rotate, IsDifferentiableInInputAndAngles) {
  for (const RotaryPairs pairs : {RotaryPairs::adjacent, RotaryPairs::halves}) {
    for (const Tensor& angles : {random_tensor({4, 5}, 2), random_tensor({3, 4, 5}, 3)}) {
      test::check_gradients([&](const Inputs& in) { return ops::rotate(in[0], rotation(in[1], pairs, 1)); },
                            {random_tensor({2, 3, 5, 10}), angles});
      test::check_gradients([&](const Inputs& in) { return ops::rotate_packed(in[0], rotation(in[1], pairs, 1)); },
                            {random_tensor({2, 5, 3, 3, 10}), angles});
    }
  }
}

TEST(Rotate, SaysWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3, 7, 24});
  EXPECT_THROW(ops::rotate(x, rotation(random_tensor({6, 12}))), Error);
  EXPECT_THROW(ops::rotate(x, rotation(random_tensor({7, 11}))), Error);
  EXPECT_THROW(ops::rotate(x, rotation(random_tensor({2, 7, 12}))), Error);
  EXPECT_THROW(ops::rotate(x, rotation(random_tensor({7, 12}), RotaryPairs::adjacent, 1)), Error);
  EXPECT_THROW(rotation(random_tensor({12})), Error);
  EXPECT_THROW(ops::rotate_packed(x, rotation(random_tensor({7, 12}))), Error);
}

}  // namespace
}  // namespace vitrail
