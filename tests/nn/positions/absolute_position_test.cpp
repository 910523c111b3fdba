#include "vitrail/nn/positions/absolute_position.h"

#include <cmath>
#include <numbers>

#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/nn/positions/alibi.h"
#include "vitrail/nn/positions/position.h"

namespace vitrail::nn {
namespace {

using test::expect_close;

const io::Safetensors& golden() {
  static const io::Safetensors file = test::golden("nn/positions.safetensors");
  return file;
}

double dot(const Tensor& rows, std::int64_t i, std::int64_t j) {
  const std::vector<float> values = rows.values();
  const auto width = static_cast<std::size_t>(rows.size(1));
  double sum = 0;
  for (std::size_t c = 0; c < width; ++c) {
    sum += static_cast<double>(values[static_cast<std::size_t>(i) * width + c]) *
           static_cast<double>(values[static_cast<std::size_t>(j) * width + c]);
  }
  return sum;
}

// Vaswani et al. 2017, section 3.5: "for any fixed offset k, PE(pos + k) can be represented as a linear function of
// PE(pos)": each pair (sin, cos) turns by k ω.
TEST(SinePositions, ShiftIsALinearMap) {
  constexpr std::int64_t dim = 12;
  const Tensor table = sine_positions(40, dim);
  const std::vector<float> p = table.values();
  for (const std::int64_t k : {1, 7, 20}) {
    for (std::int64_t n = 0; n + k < 40; ++n) {
      for (std::int64_t i = 0; i < dim / 2; ++i) {
        const double turn = static_cast<double>(k) * std::pow(10000.0, -2 * static_cast<double>(i) / dim);
        const auto at = [&](std::int64_t row, std::int64_t c) {
          return static_cast<double>(p[static_cast<std::size_t>(row * dim + 2 * i + c)]);
        };
        EXPECT_NEAR(at(n + k, 0), at(n, 0) * std::cos(turn) + at(n, 1) * std::sin(turn), 1e-5);
        EXPECT_NEAR(at(n + k, 1), at(n, 1) * std::cos(turn) - at(n, 0) * std::sin(turn), 1e-5);
      }
    }
  }
  EXPECT_EQ(p[0], 0);
  EXPECT_EQ(p[1], 1);
  EXPECT_NEAR(static_cast<double>(p[dim]), std::sin(1.0), 1e-6);
  EXPECT_THROW(sine_positions(4, 7), Error);
}

TEST(GroundPositions, AreThoseOfScaleMae) {
  const std::vector<float> metres = golden().get("gsd.metres").values();
  for (std::size_t i = 0; i < metres.size(); ++i) {
    const Tensor expected = golden().get("gsd.positions").select(0, static_cast<std::int64_t>(i));
    const AbsoluteConfig config = {.kind = AbsoluteKind::sincos_gsd, .dim = 16, .prefix = 1, .gsd = metres[i]};
    expect_close(fixed_positions(config, {5, 5}).select(0, 0), expected, 1e-5);
  }
}

// A patch that is twice as wide lies twice as far out: the same place on the ground has the same vector.
TEST(GroundPositions, BelongToPlacesOnTheGround) {
  const auto table = [](double gsd) {
    const AbsoluteConfig config = {.kind = AbsoluteKind::sincos_gsd, .dim = 16, .gsd = gsd};
    return fixed_positions(config, {6, 6}).select(0, 0);
  };
  expect_close(table(2).narrow(0, 6 * 2 + 1, 1), table(1).narrow(0, 6 * 4 + 2, 1), 1e-6);
  expect_close(table(1), sincos_positions({6, 6}, 16, 0).select(0, 0), 0);
}

// Tancik et al. 2020: the inner products are a kernel of the offset alone, that of a Gaussian on the average.
TEST(FourierPositions, AreAKernelOfTheOffset) {
  constexpr std::int64_t dim = 4096;
  constexpr double sigma = 1.5;
  const Tensor table = fourier_positions({8, 8}, dim, sigma);
  for (const std::int64_t i : {0, 9, 20}) {
    EXPECT_NEAR(dot(table, i, i), dim / 2, 1e-2);
    EXPECT_NEAR(dot(table, i, i + 8), dot(table, 3, 11), 1e-2);
    EXPECT_NEAR(dot(table, i, i + 18), dot(table, 1, 19), 1e-2);
    const double distance = 1.0 / 8;
    const double gauss = std::exp(-2 * std::pow(std::numbers::pi * sigma * distance, 2));
    EXPECT_NEAR(dot(table, i, i + 1) / (dim / 2), gauss, 0.05);
  }
  EXPECT_THROW(fourier_positions({2, 2}, 7, 1), Error);
}

TEST(LearnedFourier, IsTheEquationAndDifferentiable) {
  ParameterStore store({3});
  LearnedFourier fourier(Scope(store), 8, 0.3);
  Pass pass;
  const Tensor y = fourier({2, 3}, pass);
  ASSERT_EQ(y.shape(), (Shape{6, 8}));
  const std::vector<float> w = fourier.frequencies.values();
  Tensor features = Tensor::empty({6, 8});
  for (std::int64_t n = 0; n < 6; ++n) {
    for (std::int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(w[static_cast<std::size_t>(2 * i)]) * static_cast<double>(n / 3) / 2 +
                           static_cast<double>(w[static_cast<std::size_t>(2 * i + 1)]) * static_cast<double>(n % 3) / 3;
      features.data<float>()[n * 8 + i] = static_cast<float>(std::cos(angle) / std::sqrt(8));
      features.data<float>()[n * 8 + 4 + i] = static_cast<float>(std::sin(angle) / std::sqrt(8));
    }
  }
  expect_close(y, fourier.mlp(features, pass), 1e-5);
  test::check_gradients(
      [&](const std::vector<Tensor>& in) {
        fourier.frequencies = in[0];
        return fourier({2, 3}, pass);
      },
      {fourier.frequencies.detach()});
}

TEST(Alibi, HasThePublishedSlopes) {
  for (const std::int64_t heads : {1, 2, 3, 6, 8, 12, 16}) {
    const std::vector<float> slopes = alibi_slopes(heads);
    expect_close(Tensor::from(slopes, {heads}), golden().get("slopes." + std::to_string(heads)), 1e-6);
  }
  EXPECT_THROW(alibi_slopes(0), Error);
}

TEST(Alibi, OnTheGridIsThatOfCroma) {
  for (const std::int64_t heads : {3, 8, 12}) {
    expect_close(alibi_bias(AlibiKind::grid, {4, 4}, heads, 0), golden().get("alibi2d." + std::to_string(heads)), 1e-6);
  }
}

TEST(Alibi, IsALinearPenalty) {
  const Tensor bias = alibi_bias(AlibiKind::sequence, {2, 5}, 4, 2);
  const std::vector<float> slopes = alibi_slopes(4);
  for (std::int64_t h = 0; h < 4; ++h) {
    const std::vector<float> scores = bias.select(0, 0).select(0, h).contiguous().values();
    for (std::int64_t i = 0; i < 12; ++i) {
      for (std::int64_t j = 0; j < 12; ++j) {
        const float expected =
            i < 2 || j < 2 ? 0 : -slopes[static_cast<std::size_t>(h)] * static_cast<float>(std::abs(i - j));
        EXPECT_FLOAT_EQ(scores[static_cast<std::size_t>(i * 12 + j)], expected);
      }
    }
  }
}

// Entries for tokens in front are shared by all of them, however many there are.
TEST(RelPosBias, CountsOffsetsAlone) {
  ParameterStore store({1});
  const RelPosBias layer(Scope(store), {3, 4}, 2, 3);
  ASSERT_EQ(layer.table.shape(), (Shape{5 * 7 + 3, 2}));
  Pass pass;
  const Tensor bias = layer(pass);
  ASSERT_EQ(bias.shape(), (Shape{1, 2, 15, 15}));
  const std::vector<float> head = bias.select(0, 0).select(0, 1).contiguous().values();
  const auto at = [&](std::int64_t i, std::int64_t j) { return head[static_cast<std::size_t>(i * 15 + j)]; };
  EXPECT_EQ(at(3, 3 + 5), at(4, 4 + 5));  // one down, one right
  EXPECT_NE(at(3, 3 + 5), at(3 + 5, 3));
  EXPECT_EQ(at(0, 7), at(2, 14));
  EXPECT_EQ(at(7, 0), at(14, 2));
  EXPECT_EQ(at(0, 0), at(1, 2));
  EXPECT_NE(at(0, 7), at(7, 0));
}

}  // namespace
}  // namespace vitrail::nn
