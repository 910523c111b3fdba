#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/images/windows.cpp"
#include "vitrail/kernels/windows.h"

#include <cstring>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void add_typed(const T* a, const T* b, T* sum, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(hn::Add(load(d, a + i, part), load(d, b + i, part)), d, sum + i, part);
  });
}

void add_run(const void* a, const void* b, void* sum, std::int64_t n, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    add_typed(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(sum), n);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(add_run);

// Calls run(token of the grid or -1 for padding, token of the windows, count) for all tokens of the windows, in runs of
// `count` tokens that are adjacent in the grid and in the windows. Threads share the bands of windows.
template <class Run>
void for_each_run(const WindowLayout& l, Run run) {
  const std::int64_t columns = l.columns();
  const std::int64_t area = l.size[0] * l.size[1];
  const std::int64_t bands = l.batch * l.rows();
  const std::int64_t longest = l.by_columns ? 1 : l.size[1];
  const std::int64_t height = l.rolled_height();
  const std::int64_t width = l.rolled_width();
  parallel_for(bands, rows_worth_a_thread(columns * area * l.channels), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t band = begin; band < end; ++band) {
      const std::int64_t sample = band / l.rows();
      for (std::int64_t r = 0; r < l.size[0]; ++r) {
        const std::int64_t y = band % l.rows() * l.size[0] + r;
        const std::int64_t rolled = y < height ? (y + l.shift[0]) % height : l.height;
        const std::int64_t from_row = rolled < l.height ? (sample * l.height + rolled) * l.width : -1;
        for (std::int64_t x = 0, count = 0; x < columns * l.size[1]; x += count) {
          const std::int64_t c = x % l.size[1];
          const std::int64_t at = (band * columns + x / l.size[1]) * area;
          const std::int64_t to = at + (l.by_columns ? c * l.size[0] + r : r * l.size[1] + c);
          count = std::min(longest, l.size[1] - c);
          if (from_row < 0 || x >= width) {
            run(std::int64_t{-1}, to, count);
            continue;
          }
          const std::int64_t from = (x + l.shift[1]) % width;
          const bool padding = from >= l.width;
          count = std::min({count, width - x, (padding ? width : l.width) - from});
          run(padding ? std::int64_t{-1} : from_row + from, to, count);
        }
      }
    }
  });
}

}  // namespace

void window_partition(const WindowLayout& layout, const void* grid, void* windows, DType dtype) {
  const std::size_t token = static_cast<std::size_t>(layout.channels) * size_of(dtype);
  const auto* in = static_cast<const std::byte*>(grid);
  auto* out = static_cast<std::byte*>(windows);
  for_each_run(layout, [=](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::byte* target = out + static_cast<std::size_t>(to) * token;
    if (from < 0) {
      std::memset(target, 0, static_cast<std::size_t>(count) * token);
    } else {
      std::memcpy(target, in + static_cast<std::size_t>(from) * token, static_cast<std::size_t>(count) * token);
    }
  });
}

void window_reverse(const WindowLayout& layout, const void* windows, const void* residual, void* grid, DType dtype) {
  const std::size_t token = static_cast<std::size_t>(layout.channels) * size_of(dtype);
  const auto* in = static_cast<const std::byte*>(windows);
  const auto* other = static_cast<const std::byte*>(residual);
  auto* out = static_cast<std::byte*>(grid);
  for_each_run(layout, [=](std::int64_t to, std::int64_t from, std::int64_t count) {
    if (to < 0) {
      return;
    }
    const std::size_t at = static_cast<std::size_t>(to) * token;
    const std::byte* source = in + static_cast<std::size_t>(from) * token;
    if (other == nullptr) {
      std::memcpy(out + at, source, static_cast<std::size_t>(count) * token);
    } else {
      HWY_DYNAMIC_DISPATCH(add_run)(source, other + at, out + at, count * layout.channels, dtype);
    }
  });
}

}  // namespace vitrail::kernels
#endif
