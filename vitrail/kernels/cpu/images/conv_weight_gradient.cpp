#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/images/conv_weight_gradient.cpp"
#include "vitrail/kernels/conv_weight_gradient.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/kernels/parallel.h"
// This comes after simd.h, which sets Highway up.
#include "vitrail/kernels/cpu/products/register_tile-inl.h"

// The gradient of a convolution's weight is, for each tap of the kernel, Σ a bᵀ over the pixels of the result: a [M]
// are the channels of one side (the result or the input) at a pixel, b [N] those of the other side at the pixel that
// the tap connects with it. In general nothing is copied or padded: pixels whose tap lies outside the image are left
// out.

#ifndef VITRAIL_KERNELS_CONV_WEIGHT_GRADIENT_ONCE
#define VITRAIL_KERNELS_CONV_WEIGHT_GRADIENT_ONCE
namespace vitrail::kernels {

// Adjacent pixels of one row, on both sides.
struct PixelRun {
  const float* a;
  const float* b;
  std::int64_t pixels;
};

// The sums [M, N] of one tap, of which the columns [begin, end) are computed.
struct OuterSums {
  std::int64_t a_step, b_step;  // floats from one pixel to the next
  std::int64_t rows, columns;   // M, N
  std::int64_t begin, end;      // the columns that are computed
  float* sums;
  bool more;  // whether to add to the present contents of `sums`
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

void sum_outer_products(std::span<const PixelRun> runs, const OuterSums& s) {
  for_tile_columns(s.begin, s.end, [&]<int kVectors>(std::int64_t column, auto part) HWY_ATTR {
    for_tile_rows(0, s.rows, [&]<int kRows>(std::int64_t row) HWY_ATTR {
      float* const place = s.sums + row * s.columns + column;
      RegisterTile<kRows, kVectors> tile;
      if (s.more) {
        tile.load(place, s.columns, part);
      } else {
        tile.zero();
      }
      for (const PixelRun& run : runs) {
        tile.add_product(run.pixels, run.a + row, 1, s.a_step, run.b + column, s.b_step, part);
      }
      tile.store(place, s.columns, part);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(sum_outer_products);
namespace {

constexpr std::int64_t panel = 64;            // columns that are not divided among threads
constexpr std::int64_t pixels_at_once = 448;  // pixels whose two sides stay in the cache while all taps are summed
constexpr std::int64_t few = 1 << 19;         // up to so many sums, each thread has a copy of its own

// How the gradient is divided into sums of outer products.
struct Plan {
  // Whether the kW taps of a row of the kernel are summed as one. With few channels they are: the kW C values of x that
  // such a row sees, which are adjacent in memory, are one side (M), the O channels of dy the other (N), and x is
  // padded with columns of zeros. Otherwise each tap is summed on its own: the O channels of dy are one side (M), the C
  // channels of x the other (N).
  bool merged;
  Tensor pixels;  // x [B, H, W (with the padding if merged), C]
  std::array<std::int64_t, 2> padding;
  std::int64_t rows, columns;
};

Plan plan_for(const Tensor& x, const Tensor& dweight, const ConvGeometry& geometry) {
  constexpr std::int64_t few_channels = 16;
  const Tensor pixels = kernels::pixels(x);
  const std::int64_t channels = x.size(1);
  if (dweight.size(3) == 1 || channels >= few_channels || geometry.dilation[1] != 1) {
    return {false, pixels, geometry.padding, dweight.size(0), channels};
  }
  const Shape& shape = pixels.shape();
  const Tensor padded = Tensor::zeros(shape.with(2, shape[2] + 2 * geometry.padding[1]));
  copy_layout(pixels, padded.narrow(2, geometry.padding[1], shape[2]));
  return {true, padded, {geometry.padding[0], 0}, dweight.size(3) * channels, dweight.size(0)};
}

// Sums the rows [begin, end) of the result, counted over the batch, into sums [kH, kW (1 if merged), M, N], of which
// the columns [from, to) of N are computed.
void sum_rows_of_pixels(const Plan& plan, const Tensor& dy, const ConvGeometry& g, std::int64_t begin, std::int64_t end,
                        std::int64_t from, std::int64_t to, const Tensor& sums) {
  const Tensor& x = plan.pixels;
  const std::int64_t height = x.size(1);
  const std::int64_t width = x.size(2);
  const std::int64_t outputs = dy.size(1);
  const std::int64_t y_height = dy.size(2);
  const std::int64_t y_width = dy.size(3);
  const std::int64_t taps_across = sums.size(1);
  const std::int64_t at_once = std::max<std::int64_t>(1, pixels_at_once / y_width);
  const std::int64_t x_step = g.stride[1] * x.size(3);
  std::vector<PixelRun> runs;
  for (std::int64_t row = begin; row < end; row += at_once) {
    for (std::int64_t tap = 0; tap < sums.size(0) * taps_across; ++tap) {
      const std::int64_t down = tap / taps_across * g.dilation[0] - plan.padding[0];
      const std::int64_t across = tap % taps_across * g.dilation[1] - plan.padding[1];
      // [first, last) are the pixels of a row of dy for which the tap lies inside x.
      const std::int64_t first = across < 0 ? (-across + g.stride[1] - 1) / g.stride[1] : 0;
      const std::int64_t last = across >= width ? 0 : std::min(y_width, (width - 1 - across) / g.stride[1] + 1);
      runs.clear();
      for (std::int64_t r = row; r < std::min(end, row + at_once) && first < last; ++r) {
        const std::int64_t y = r % y_height * g.stride[0] + down;
        if (y >= 0 && y < height) {
          const float* left = dy.data<float>() + (r * y_width + first) * outputs;
          const float* right =
              x.data<float>() + ((r / y_height * height + y) * width + across) * x.size(3) + first * x_step;
          runs.push_back(plan.merged ? PixelRun{right, left, last - first} : PixelRun{left, right, last - first});
        }
      }
      HWY_DYNAMIC_DISPATCH(sum_outer_products)
      (runs, {.a_step = plan.merged ? x_step : outputs,
              .b_step = plan.merged ? outputs : x_step,
              .rows = plan.rows,
              .columns = plan.columns,
              .begin = from,
              .end = to,
              .sums = sums.data<float>() + tap * plan.rows * plan.columns,
              .more = row > begin});
    }
  }
}

}  // namespace

void one_group_weight_gradient(const Tensor& x, const Tensor& dy, const ConvGeometry& geometry, const Tensor& dweight) {
  const Plan plan = plan_for(x, dweight, geometry);
  const std::int64_t outputs = dweight.size(0);
  const std::int64_t channels = dweight.size(1);
  const std::int64_t height = dweight.size(2);
  const std::int64_t width = dweight.size(3);
  const Shape shape{height, plan.merged ? 1 : width, plan.rows, plan.columns};
  const bool as_it_lies = !plan.merged && height * width == 1;
  const Tensor sums = as_it_lies ? dweight.reshape(shape) : Tensor::empty(shape);

  // Threads share the pixels if each can have a copy of the sums, else the columns as far as there are panels of them.
  const std::int64_t rows = dy.size(0) * dy.size(2);
  const int threads = threads_for(rows * dy.size(3) * dweight.numel(), 1 << 18);
  const std::int64_t panels = (plan.columns + panel - 1) / panel;
  const std::int64_t across = sums.numel() <= few ? 1 : std::min<std::int64_t>(threads, panels);
  const std::int64_t down = std::min(threads / across, rows);
  std::vector<Tensor> parts{sums};
  while (static_cast<std::int64_t>(parts.size()) < down) {
    parts.push_back(Tensor::empty(shape));
  }
  parallel_for(across * down, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t i = task / across;
      const std::int64_t j = task % across;
      sum_rows_of_pixels(plan, dy, geometry, rows * i / down, rows * (i + 1) / down, panels * j / across * panel,
                         std::min(plan.columns, panels * (j + 1) / across * panel), parts[static_cast<std::size_t>(i)]);
    }
  });
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::array operands = {Operand{sums.raw(), shape.contiguous_strides()},
                                 Operand{parts[i].raw(), shape.contiguous_strides()}};
    elementwise(Elementwise::add, operands, sums.raw(), shape, DType::f32);
  }
  if (!as_it_lies) {
    const Tensor taps = plan.merged ? sums.reshape({height, width, channels, outputs}).permute({3, 2, 0, 1})
                                    : sums.permute({2, 3, 0, 1});
    copy_layout(taps, dweight);
  }
}

}  // namespace vitrail::kernels
#endif
