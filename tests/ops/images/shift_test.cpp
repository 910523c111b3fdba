#include "vitrail/ops/images/shift.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {
namespace {

using ops::Border;
using ops::ChannelShift;
using ops::shift_channels;
using Shifts = std::vector<ChannelShift>;

// By its definition, element by element.
Tensor by_definition(const Tensor& x, const Shifts& shifts, Border border) {
  const Tensor y = Tensor::zeros(x.shape());
  const std::int64_t height = x.size(1);
  const std::int64_t width = x.size(2);
  const std::vector<float> values = x.values();
  std::size_t at = 0;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        for (std::int64_t c = 0; c < x.size(3); ++c, ++at) {
          for (const ChannelShift& s : shifts) {
            if (c < s.begin || c >= s.end || (c - s.begin) % s.step != 0) {
              continue;
            }
            std::int64_t row = i + s.rows;
            std::int64_t column = j + s.columns;
            if (border == Border::edge) {
              row = std::clamp<std::int64_t>(row, 0, height - 1);
              column = std::clamp<std::int64_t>(column, 0, width - 1);
            }
            if (row >= 0 && row < height && column >= 0 && column < width) {
              y.data<float>()[at] =
                  values[static_cast<std::size_t>(((b * height + row) * width + column) * x.size(3) + c)];
            }
          }
        }
      }
    }
  }
  return y;
}

const std::vector<std::pair<Shape, Shifts>>& cases() {
  static const std::vector<std::pair<Shape, Shifts>> all = {
      {{2, 4, 5, 8}, {{0, 2, 1, 0, -1}, {2, 4, 1, 0, 1}, {4, 6, 1, -1, 0}, {6, 8, 1, 1, 0}}},
      {{3, 5, 3, 7}, {{0, 7, 3, 0, 0}, {1, 7, 3, 1, 0}, {2, 7, 3, -1, 0}}},
      {{1, 1, 6, 40}, {{0, 40, 2, 0, 2}, {1, 40, 2, 3, -2}}},
      {{2, 1, 1, 3}, {{0, 1, 1, 1, 1}, {1, 3, 1, -1, 0}}},
      {{2, 3, 4, 5}, {{0, 5, 1, -5, 2}}}};
  return all;
}

TEST(ShiftChannels, ReadsWhereItsDefinitionSays) {
  for (const auto& [shape, shifts] : cases()) {
    for (const Border border : {Border::zeros, Border::edge}) {
      const Tensor x = ops::cast(ops::cast(random_tensor(shape, 1), DType::bf16), DType::f32);
      const Tensor expected = by_definition(x, shifts, border);
      expect_close(shift_channels(x, shifts, border), expected, 0, fmt::format("{}", shape));
      expect_close(shift_channels(ops::cast(x, DType::bf16), shifts, border), expected, 0, fmt::format("{}", shape));
    }
  }
}

// The shift is linear: ⟨shift(x), dy⟩ = ⟨x, dx⟩ for every dy.
TEST(ShiftChannels, HasTheGradientsOfFiniteDifferences) {
  for (const auto& [shape, shifts] : cases()) {
    for (const Border border : {Border::zeros, Border::edge}) {
      check_gradients([&](const std::vector<Tensor>& in) { return shift_channels(in[0], shifts, border); },
                      {random_tensor(shape, 1)});
    }
  }
}

TEST(ShiftChannels, GivesGradientsInBf16) {
  const auto& [shape, shifts] = cases().front();
  for (const Border border : {Border::zeros, Border::edge}) {
    const auto gradient = [&](DType dtype) {
      Tensor x = ops::cast(random_tensor(shape, 1), dtype).clone();
      autograd::require_grad(x);
      autograd::Tape tape;
      tape.backward(shift_channels(x, shifts, border), ops::cast(random_tensor(shape, 2), dtype));
      return autograd::grad(x);
    };
    expect_close(gradient(DType::bf16), gradient(DType::f32), 1e-2);
  }
}

TEST(ShiftChannels, TakesStridedImages) {
  const auto& [shape, shifts] = cases().front();
  const Tensor x = random_tensor({2, 8, 4, 5}, 1).permute({0, 2, 3, 1});
  ASSERT_EQ(x.shape(), shape);
  expect_close(shift_channels(x, shifts, Border::edge), shift_channels(x.clone(), shifts, Border::edge), 0);
}

TEST(ShiftChannels, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              shift_channels(Tensor::zeros({2, 3, 4}), {}, Border::zeros);
            }),
            "shift_channels: x must be [B, H, W, C], f32 or bf16, not [2, 3, 4] f32");
  EXPECT_EQ(error_of([] {
              shift_channels(Tensor::zeros({1, 2, 2, 3}), {{0, 2, 1, 0, 0}}, Border::zeros);
            }),
            "shift_channels: channel 2 belongs to 0 shifts, not to one");
  EXPECT_EQ(error_of([] {
              shift_channels(Tensor::zeros({1, 2, 2, 3}), {{0, 4, 1, 0, 0}}, Border::zeros);
            }),
            "shift_channels: there are no channels from 0 to 4 in steps of 1 among 3");
}

}  // namespace
}  // namespace vitrail::test
