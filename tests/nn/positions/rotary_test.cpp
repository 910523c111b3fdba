#include "vitrail/nn/positions/rotary.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/attention/rotary.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::nn {
namespace {

using ops::RotaryPairs;
using test::expect_close;
using test::random_tensor;

const io::Safetensors& positions() {
  static const io::Safetensors file = test::golden("nn/positions.safetensors");
  return file;
}

// timm's tables hold each pair's sine twice; ours the first with the other sign.
void expect_timms(const ops::Rotation& rotation, const Tensor& cosines, const Tensor& sines, const std::string& what) {
  const auto flat = [](const Tensor& x) { return x.contiguous().reshape({-1}); };
  expect_close(flat(rotation.tables.cosines), flat(cosines), 1e-5, what);
  Tensor ours = rotation.tables.sines.clone();
  const std::int64_t width = ours.size(-1);
  const bool halves = rotation.tables.pairs == RotaryPairs::halves;
  for (std::int64_t i = 0; i < ours.numel(); ++i) {
    if (halves ? i % width < width / 2 : i % 2 == 0) {
      ours.data<float>()[i] *= -1;
    }
  }
  expect_close(flat(ours), flat(sines), 1e-5, what);
}

TEST(AxialAngles, AreTimms) {
  const Tensor plain = axial_angles({4, 6}, 16, {.temperature = 100, .columns_first = true});
  expect_timms(ops::rotation(plain), positions().get("axial.cosines"), positions().get("axial.sines"), "axial");
  const Tensor stretched = axial_angles({4, 6}, 16, {.offset = 1, .reference = Size2{8, 9}});
  expect_timms(ops::rotation(stretched, RotaryPairs::halves), positions().get("axial_stretched.cosines"),
               positions().get("axial_stretched.sines"), "stretched");
  EXPECT_THROW(axial_angles({4, 6}, 18), Error);
}

TEST(MixedAngles, AreTimms) {
  ParameterStore store({1});
  const MixedAngles mixed(Scope(store) / "rope", 2, 2, 16);
  mixed.freqs.copy_from(positions().get("mixed.freqs"));
  const Tensor angles = mixed({3, 4});
  ASSERT_EQ(angles.shape(), (Shape{2, 2, 12, 8}));
  for (const std::int64_t block : {0, 1}) {
    expect_timms(ops::rotation(angles.select(0, block)), positions().get("mixed.cosines").select(0, block),
                 positions().get("mixed.sines").select(0, block), "mixed");
  }
}

TEST(MixedAngles, AreDifferentiable) {
  ParameterStore store({1});
  MixedAngles mixed(Scope(store) / "rope", 2, 2, 8);
  test::check_gradients(
      [&](const std::vector<Tensor>& in) {
        mixed.freqs = in[0];
        return mixed({2, 3});
      },
      {mixed.freqs.detach()});
}

TEST(SequenceAngles, AreThoseOfTheEquation) {
  const std::vector<float> angles = sequence_angles(50, 8).values();
  for (std::size_t n = 0; n < 50; ++n) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double expected = static_cast<double>(n) * std::pow(10000.0, -2.0 * static_cast<double>(i) / 8);
      EXPECT_NEAR(static_cast<double>(angles[n * 4 + i]), expected, 1e-5);
    }
  }
  EXPECT_THROW(sequence_angles(4, 7), Error);
}

// What rotary positions are for: the scores of equal queries and keys depend on the offset alone, on a grid on both
// parts of it.
TEST(RotaryPositions, MakeScoresOfTheOffsetAlone) {
  constexpr std::int64_t width = 16;
  const Size2 grid = {5, 7};
  ParameterStore store({1});
  for (const auto kind :
       {RotaryPositions::Kind::sequence, RotaryPositions::Kind::axial, RotaryPositions::Kind::mixed}) {
    const RotaryPositions rope(
        Scope(store) / std::to_string(static_cast<int>(kind)),
        {.kind = kind, .depth = 2, .num_heads = 1, .head_dim = width, .prefix = 1, .axial = {.temperature = 10}});
    const std::vector<ops::Rotation> rotations = rope(grid);
    ASSERT_EQ(rotations.size(), kind == RotaryPositions::Kind::mixed ? 2U : 1U);
    const Shape shape = {1, 1, 1 + grid[0] * grid[1], width};
    const auto turned = [&](std::uint64_t seed) {
      return ops::rotate(random_tensor({1, 1, 1, width}, seed).expand(shape), rotations.back())
          .select(0, 0)
          .select(0, 0);
    };
    const std::vector<float> q = turned(1).contiguous().values();
    const std::vector<float> k = turned(2).contiguous().values();
    const auto score = [&](std::int64_t i, std::int64_t j) {  // of patches
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        sum += static_cast<double>(q[static_cast<std::size_t>((i + 1) * width + c)]) *
               static_cast<double>(k[static_cast<std::size_t>((j + 1) * width + c)]);
      }
      return sum;
    };
    const std::int64_t step = kind == RotaryPositions::Kind::sequence ? 3 : grid[1] + 2;  // down one row, right two
    for (const std::int64_t i : {0, 1, 8, 15}) {
      EXPECT_NEAR(score(i, i + step), score(0, step), 1e-4);
      EXPECT_NEAR(score(i + step, i), score(step, 0), 1e-4);
    }
    EXPECT_GT(std::abs(score(0, step) - score(step, 0)), 1e-2);
    EXPECT_GT(std::abs(score(0, step) - score(0, 1)), 1e-3);
    // The token in front is not turned.
    expect_close(ops::rotate(random_tensor({1, 1, 1, width}, 1).expand(shape), rotations.back()).narrow(2, 0, 1),
                 random_tensor({1, 1, 1, width}, 1), 0);
  }
}

}  // namespace
}  // namespace vitrail::nn
