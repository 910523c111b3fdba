#include "vitrail/ops/images/windows.h"

#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::ops {
namespace {

using test::expect_close;
using test::random_tensor;

// The same by the rearrangements that timm makes one after the other, or transformers, which pads first.
Tensor cut_step_by_step(const Tensor& x, const Windows& w) {
  const std::int64_t rows = w.rows(x.size(1)), columns = w.columns(x.size(2));
  const auto rolled = [&](const Tensor& y) { return roll(roll(y, 1, -w.shift[0]), 2, -w.shift[1]); };
  const auto padded = [&](const Tensor& y) {
    return pad(pad(y, 1, 0, rows * w.size[0] - x.size(1)), 2, 0, columns * w.size[1] - x.size(2));
  };
  Tensor y = w.pad_first ? rolled(padded(x)) : padded(rolled(x));
  y = reshape(y, {x.size(0), rows, w.size[0], columns, w.size[1], x.size(3)});
  y = w.by_columns ? permute(y, {0, 1, 3, 4, 2, 5}) : permute(y, {0, 1, 3, 2, 4, 5});
  return reshape(contiguous(y), {x.size(0) * rows * columns, w.area(), x.size(3)});
}

const std::vector<Windows> cases = {
    {.size = {2, 3}},
    {.size = {4, 4}, .shift = {2, 1}},
    {.size = {7, 2}, .shift = {3, 0}},
    {.size = {2, 2}, .by_columns = true},
    {.size = {3, 2}, .shift = {1, 1}, .by_columns = true},
    {.size = {9, 16}, .shift = {4, 8}},   // one window larger than the grid
    {.size = {2, 5}, .shift = {8, 13}},   // shifts beyond the grid
    {.size = {3, 4}, .shift = {-1, -2}},  // to the other side
    {.size = {4, 4}, .shift = {2, 1}, .pad_first = true},
    {.size = {3, 5}, .shift = {4, 13}, .pad_first = true},
    {.size = {3, 2}, .shift = {1, 1}, .by_columns = true, .pad_first = true},
    {.size = {9, 16}, .shift = {4, 15}, .pad_first = true},
};

TEST(Windows, AreCutAsByRollingPaddingAndPermuting) {
  for (const Shape& shape : {Shape{2, 7, 11, 5}, Shape{1, 8, 8, 3}, Shape{3, 1, 2, 1}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = cast(random_tensor(shape), dtype);
      for (const Windows& windows : cases) {
        expect_close(window_partition(x, windows), cut_step_by_step(x, windows), 0);
      }
    }
  }
}

TEST(Windows, ArePutTogetherAgain) {
  const Tensor x = random_tensor({2, 7, 11, 5});
  const Tensor other = random_tensor({2, 7, 11, 5}, 2);
  for (const Windows& windows : cases) {
    const Tensor cut = window_partition(x, windows);
    EXPECT_EQ(cut.size(0), 2 * windows.count({7, 11}));
    expect_close(window_reverse(cut, windows, {7, 11}), x, 0);
    expect_close(window_reverse(cut, windows, {7, 11}, other), x + other, 0);
    const Tensor half = cast(cut, DType::bf16);
    expect_close(window_reverse(half, windows, {7, 11}, cast(other, DType::bf16)),
                 cast(x, DType::bf16) + cast(other, DType::bf16), 0);
  }
}

TEST(Windows, TakeStridedGrids) {
  const Tensor x = random_tensor({2, 5, 7, 6});
  const Windows windows{.size = {2, 3}, .shift = {1, 1}};
  const Tensor planes = x.permute({0, 2, 3, 1});
  expect_close(window_partition(planes, windows), window_partition(planes.contiguous(), windows), 0);
}

TEST(Windows, HaveGradients) {
  for (const Windows& windows : cases) {
    test::check_gradients([&](const std::vector<Tensor>& in) { return window_partition(in[0], windows); },
                          {random_tensor({2, 5, 4, 2})});
    test::check_gradients(
        [&](const std::vector<Tensor>& in) {
          return window_reverse(in[0], windows, {5, 4}, in[1]);
        },
        {random_tensor({2 * windows.count({5, 4}), windows.area(), 2}), random_tensor({2, 5, 4, 2}, 3)});
  }
}

TEST(Windows, SayWhatDoesNotFit) {
  const Windows windows{.size = {2, 2}};
  EXPECT_THROW(window_partition(random_tensor({4, 4, 2}), windows), Error);
  EXPECT_THROW(window_partition(random_tensor({1, 4, 4, 2}), {.size = {0, 2}}), Error);
  EXPECT_THROW(window_reverse(random_tensor({5, 4, 2}), windows, {4, 4}), Error);
  EXPECT_THROW(window_reverse(random_tensor({4, 3, 2}), windows, {4, 4}), Error);
  EXPECT_THROW(window_reverse(random_tensor({4, 4, 2}), windows, {4, 4}, random_tensor({1, 4, 3, 2})), Error);
}

}  // namespace
}  // namespace vitrail::ops
