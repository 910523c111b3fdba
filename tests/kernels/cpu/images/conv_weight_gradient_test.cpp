#include "vitrail/kernels/conv_weight_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/targets.h"
#include "vitrail/kernels/layout.h"

namespace vitrail {
namespace {

struct Conv {
  std::int64_t batch, channels, height, width, outputs;
  std::array<std::int64_t, 2> kernel;
  kernels::ConvGeometry geometry;
};

std::int64_t output_size(const Conv& s, std::size_t dim) {
  const std::int64_t size = dim == 0 ? s.height : s.width;
  const kernels::ConvGeometry& g = s.geometry;
  return (size + 2 * g.padding[dim] - g.dilation[dim] * (s.kernel[dim] - 1) - 1) / g.stride[dim] + 1;
}

// Against the definition in f64.
void expect_gradient(const std::string& target, const Conv& s) {
  const std::int64_t y_height = output_size(s, 0);
  const std::int64_t y_width = output_size(s, 1);
  const Tensor x = test::random_tensor({s.batch, s.height, s.width, s.channels}, 1);
  const Tensor dy = test::random_tensor({s.batch, y_height, y_width, s.outputs}, 2);
  const Tensor dweight = Tensor::full({s.outputs, s.channels, s.kernel[0], s.kernel[1]}, 7);
  kernels::one_group_weight_gradient(x.permute({0, 3, 1, 2}), dy.permute({0, 3, 1, 2}), s.geometry, dweight);
  std::vector<double> expected(static_cast<std::size_t>(dweight.numel()));
  const auto at = [&](std::int64_t o, std::int64_t c, std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(((o * s.channels + c) * s.kernel[0] + i) * s.kernel[1] + j);
  };
  const kernels::ConvGeometry& g = s.geometry;
  for (std::int64_t row = 0; row < s.batch * y_height; ++row) {
    for (std::int64_t column = 0; column < y_width; ++column) {
      for (std::int64_t tap = 0; tap < s.kernel[0] * s.kernel[1]; ++tap) {
        const std::int64_t i = tap / s.kernel[1];
        const std::int64_t j = tap % s.kernel[1];
        const std::int64_t h = row % y_height * g.stride[0] + i * g.dilation[0] - g.padding[0];
        const std::int64_t w = column * g.stride[1] + j * g.dilation[1] - g.padding[1];
        if (h < 0 || h >= s.height || w < 0 || w >= s.width) {
          continue;
        }
        const float* const pixel = x.data<float>() + ((row / y_height * s.height + h) * s.width + w) * s.channels;
        const float* const gradient = dy.data<float>() + (row * y_width + column) * s.outputs;
        for (std::int64_t o = 0; o < s.outputs; ++o) {
          for (std::int64_t c = 0; c < s.channels; ++c) {
            expected[at(o, c, i, j)] += static_cast<double>(gradient[o]) * pixel[c];
          }
        }
      }
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(expected[i] - dweight.data<float>()[i]));
  }
  EXPECT_LT(worst, 1e-6 * static_cast<double>(s.batch * y_height * y_width + 8))
      << s.outputs << " from " << s.channels << " channels on " << target;
}

TEST(ConvWeightGradient, IsTheSumOverThePixels) {
  test::for_each_target([](const std::string& target) {
    // few channels, whose taps are summed by the row
    expect_gradient(target, {2, 3, 19, 14, 10, {7, 7}, {.stride = {2, 2}, .padding = {3, 3}}});
    expect_gradient(target, {1, 1, 6, 9, 70, {2, 3}, {.stride = {1, 3}, .padding = {0, 2}}});
    expect_gradient(target, {2, 4, 9, 9, 5, {3, 3}, {.padding = {2, 2}, .dilation = {1, 2}}});
    // a tap at a time
    expect_gradient(target, {3, 17, 9, 8, 33, {3, 3}, {.padding = {1, 1}}});
    expect_gradient(target, {2, 64, 10, 7, 96, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}});
    expect_gradient(target, {2, 100, 9, 9, 7, {1, 1}, {.stride = {2, 2}}});
    expect_gradient(target, {1, 20, 8, 8, 6, {3, 2}, {.stride = {1, 2}, .padding = {3, 4}, .dilation = {2, 3}}});
    expect_gradient(target, {1, 16, 2, 2, 16, {5, 5}, {.padding = {2, 2}}});    // larger than the image
    expect_gradient(target, {9, 16, 30, 31, 16, {3, 3}, {.padding = {1, 1}}});  // threads share the pixels
  });
}

TEST(ConvWeightGradient, SharesManyChannelsAmongThreads) {
  expect_gradient("this machine", {2, 256, 4, 4, 240, {3, 3}, {.padding = {1, 1}}});
}

}  // namespace
}  // namespace vitrail
