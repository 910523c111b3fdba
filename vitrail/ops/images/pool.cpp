#include "vitrail/kernels/pool.h"

#include <algorithm>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/images/conv.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using kernels::Window;
// The windows along one dimension of `size` pixels, as PyTorch defines them.
kernels::Windows windows_of(const char* op, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                            std::int64_t padding, bool ceil_mode, bool count_include_pad) {
  check(kernel > 0 && stride > 0, "{}: kernel and stride must be positive, not {} and {}", op, kernel, stride);
  check(padding >= 0 && 2 * padding <= kernel, "{}: the padding {} must be at most half of the kernel {}", op, padding,
        kernel);
  const std::int64_t room = size + 2 * padding - kernel;
  check(size > 0 && room + (ceil_mode ? stride - 1 : 0) >= 0,
        "{}: the kernel {} is larger than the {} pixels with padding {}", op, kernel, size, padding);
  std::int64_t number = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (number - 1) * stride >= size + padding) {
    --number;  // a window must begin inside the image or the padding before it
  }
  kernels::Windows windows;
  for (std::int64_t i = 0; i < number; ++i) {
    const std::int64_t start = i * stride - padding;
    const std::int64_t stop = std::min(start + kernel, size + padding);
    const Window inside{std::max<std::int64_t>(start, 0), std::min(stop, size), 0};
    windows.push_back({inside.begin, inside.end, count_include_pad ? stop - start : inside.end - inside.begin});
  }
  return windows;
}

// The windows into which PyTorch's adaptive pooling cuts `size` pixels: `number` of them, which may overlap.
kernels::Windows parts_of(std::int64_t size, std::int64_t number) {
  check(number > 0 && size > 0, "adaptive_avg_pool2d: {} pixels cannot become {}", size, number);
  kernels::Windows windows;
  for (std::int64_t i = 0; i < number; ++i) {
    const std::int64_t begin = i * size / number;
    const std::int64_t end = ((i + 1) * size + number - 1) / number;
    windows.push_back({begin, end, end - begin});
  }
  return windows;
}

void check_image(const char* op, const Tensor& x) {
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", op, name_of(x.dtype()));
  check(x.rank() == 4, "{}: x must be [B, C, H, W], not {}", op, x.shape());
}

Shape output_shape(const Tensor& x, const kernels::Windows& rows, const kernels::Windows& columns) {
  return {x.size(0), x.size(1), static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns.size())};
}

// x in f32 and channels-last, since averages are computed in f32 whatever the dtype.
Tensor wide_image(const Tensor& x) { return kernels::widened(kernels::channels_last(x)); }

Tensor in_dtype(const Tensor& wide, DType dtype) {
  if (dtype == DType::f32) {
    return wide;
  }
  Tensor result = kernels::empty_channels_last(wide.shape(), dtype);
  kernels::narrow_into(wide, result);
  return result;
}

Tensor average(const char* op, const Tensor& x, const kernels::Windows& rows, const kernels::Windows& columns) {
  const Tensor y = kernels::empty_channels_last(output_shape(x, rows, columns), DType::f32);
  kernels::average_pool(wide_image(x), rows, columns, y);
  return autograd::record(op, in_dtype(y, x.dtype()), {&x}, [rows, columns, dx = Gradient(x)](const Tensor& dy) {
    const Tensor contribution = kernels::empty_channels_last(dx.shape(), DType::f32);
    kernels::average_pool_gradient(wide_image(dy), rows, columns, contribution);
    dx.add(in_dtype(contribution, dy.dtype()));
  });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const PoolOptions& options) {
  check_image("max_pool2d", x);
  const auto windows = [&](std::size_t d) {
    return windows_of("max_pool2d", x.size(2 + static_cast<int>(d)), options.kernel[d], options.stride[d],
                      options.padding[d], options.ceil_mode, false);
  };
  const kernels::Windows rows = windows(0);
  const kernels::Windows columns = windows(1);
  const Tensor y = kernels::empty_channels_last(output_shape(x, rows, columns), x.dtype());
  const Tensor origin = autograd::recording({&x}) ? kernels::empty_channels_last(y.shape(), DType::i32) : Tensor();
  kernels::max_pool(kernels::channels_last(x), rows, columns, y, origin);
  return autograd::record("max_pool2d", y, {&x}, [origin, rows, columns, dx = Gradient(x)](const Tensor& dy) {
    const Tensor contribution = kernels::empty_channels_last(dx.shape(), dy.dtype());
    kernels::max_pool_gradient(kernels::channels_last(dy), origin, rows, columns, contribution);
    dx.add(contribution);
  });
}

Tensor avg_pool2d(const Tensor& x, const PoolOptions& options) {
  check_image("avg_pool2d", x);
  const auto windows = [&](std::size_t d) {
    return windows_of("avg_pool2d", x.size(2 + static_cast<int>(d)), options.kernel[d], options.stride[d],
                      options.padding[d], options.ceil_mode, options.count_include_pad);
  };
  return average("avg_pool2d", x, windows(0), windows(1));
}

Tensor adaptive_avg_pool2d(const Tensor& x, std::array<std::int64_t, 2> size) {
  check_image("adaptive_avg_pool2d", x);
  return average("adaptive_avg_pool2d", x, parts_of(x.size(2), size[0]), parts_of(x.size(3), size[1]));
}

}  // namespace vitrail::ops
