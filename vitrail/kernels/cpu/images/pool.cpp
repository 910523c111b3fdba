#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/images/pool.cpp"
#include "vitrail/kernels/pool.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using I32 = hn::RebindToSigned<F32>;

HWY_INLINE V<I32> load_places(I32 d, const std::int32_t* p, Whole) { return hn::LoadU(d, p); }
HWY_INLINE V<I32> load_places(I32 d, const std::int32_t* p, std::int64_t count) {
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(d)] = {};
  std::copy_n(p, count, lanes);
  return hn::LoadU(d, lanes);
}
HWY_INLINE void store_places(V<I32> v, I32 d, std::int32_t* p, Whole) { hn::StoreU(v, d, p); }
HWY_INLINE void store_places(V<I32> v, I32 d, std::int32_t* p, std::int64_t count) {
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(d)];
  hn::StoreU(v, d, lanes);
  std::copy_n(lanes, count, p);
}

// Max pooling of `channels` channels of one image x, which has `pixel` elements from one pixel to the next and `width`
// pixels in a row; y and `origin` (unless that is null) have as many elements from one pixel to the next.
void max_of_windows(const void* x, std::int64_t pixel, std::int64_t width, const Windows& rows, const Windows& columns,
                    std::int64_t channels, DType dtype, void* y, std::int32_t* origin) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const I32 di;
    T* out = static_cast<T*>(y);
    for (const Window& row : rows) {
      for (const Window& column : columns) {
        for_lanes(d, channels, [&](std::int64_t k, auto part) HWY_ATTR {
          auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
          auto place = hn::Set(di, static_cast<std::int32_t>(row.begin * width + column.begin));
          for (std::int64_t r = row.begin; r < row.end; ++r) {
            for (std::int64_t c = column.begin; c < column.end; ++c) {
              const std::int64_t here = r * width + c;
              const auto value = load(d, static_cast<const T*>(x) + here * pixel + k, part);
              const auto larger = hn::Or(hn::Gt(value, best), hn::IsNaN(value));
              best = hn::IfThenElse(larger, value, best);
              place = hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<std::int32_t>(here)), place);
            }
          }
          store(best, d, out + k, part);
          if (origin != nullptr) {
            store_places(place, di, origin + k, part);
          }
        });
        out += pixel;
        origin += origin == nullptr ? 0 : pixel;
      }
    }
  });
}

// The gradient of max_of_windows(): each pixel of dx sums the gradients of those windows over it whose maximum it is.
// `over_rows` and `over_columns` are the ranges [begin, end) of windows over each row and column.
void gradient_of_windows(const void* dy, const std::int32_t* origin, std::int64_t pixel, const Windows& over_rows,
                         const Windows& over_columns, std::int64_t columns, std::int64_t channels, DType dtype,
                         void* dx) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const I32 di;
    T* to = static_cast<T*>(dx);
    std::int32_t here = 0;
    for (const Window& row : over_rows) {
      for (const Window& column : over_columns) {
        for_lanes(d, channels, [&](std::int64_t k, auto part) HWY_ATTR {
          auto sum = hn::Zero(d);
          for (std::int64_t i = row.begin; i < row.end; ++i) {
            for (std::int64_t j = column.begin; j < column.end; ++j) {
              const std::int64_t from = (i * columns + j) * pixel + k;
              const auto chosen = hn::Eq(load_places(di, origin + from, part), hn::Set(di, here));
              const auto gradient = load(d, static_cast<const T*>(dy) + from, part);
              sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, chosen), gradient));
            }
          }
          store(sum, d, to + k, part);
        });
        to += pixel;
        ++here;
      }
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(max_of_windows);
HWY_EXPORT(gradient_of_windows);

constexpr std::int64_t block = 64;  // channels that are processed together

// The channels of one image from `first` on, in channels-last memory.
struct Plane {
  Plane(const Tensor& x, std::int64_t sample, std::int64_t first)
      : data(x.data<float>() + sample * x.size(1) * x.size(2) * x.size(3) + first),
        pixel(x.size(1)),
        width(x.size(3)) {}
  float* at(std::int64_t row, std::int64_t column) const { return data + (row * width + column) * pixel; }
  float* at(std::int64_t place) const { return data + place * pixel; }
  float* data;
  std::int64_t pixel, width;
};

// Calls work(sample, first channel, channels) for all samples and blocks of channels, which threads share. Each call
// writes to memory of its own, so overlapping windows need no synchronization.
template <class Work>
void for_each_block(const Tensor& x, Work&& work) {
  const std::int64_t channels = x.size(1);
  const std::int64_t blocks = (channels + block - 1) / block;
  const std::int64_t cost = std::max<std::int64_t>(1, x.size(2) * x.size(3) * std::min(block, channels));
  parallel_for(x.size(0) * blocks, (1 << 14) / cost + 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * block;
      work(i / blocks, first, std::min(block, channels - first));
    }
  });
}

// The range of windows over each of `size` input rows (or columns).
Windows windows_over(const Windows& windows, std::int64_t size) {
  Windows result;
  std::int64_t first = 0;
  std::int64_t last = 0;
  const auto count = static_cast<std::int64_t>(windows.size());
  for (std::int64_t i = 0; i < size; ++i) {
    for (; first < count && windows[static_cast<std::size_t>(first)].end <= i; ++first) {
    }
    for (last = std::max(last, first); last < count && windows[static_cast<std::size_t>(last)].begin <= i; ++last) {
    }
    result.push_back({first, last, last - first});
  }
  return result;
}

// The address of channel `first` of a sample's first pixel, in channels-last memory.
std::byte* begin_of(const Tensor& x, std::int64_t sample, std::int64_t first) {
  const std::int64_t element = sample * x.size(1) * x.size(2) * x.size(3) + first;
  return static_cast<std::byte*>(x.raw()) + element * static_cast<std::int64_t>(size_of(x.dtype()));
}

std::int32_t* places_of(const Tensor& origin, std::int64_t sample, std::int64_t first) {
  return origin.defined() ? reinterpret_cast<std::int32_t*>(begin_of(origin, sample, first)) : nullptr;
}

}  // namespace

void max_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y, const Tensor& origin) {
  for_each_block(x, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    HWY_DYNAMIC_DISPATCH(max_of_windows)
    (begin_of(x, sample, first), x.size(1), x.size(3), rows, columns, channels, x.dtype(), begin_of(y, sample, first),
     places_of(origin, sample, first));
  });
}

void max_pool_gradient(const Tensor& dy, const Tensor& origin, const Windows& rows, const Windows& columns,
                       const Tensor& dx) {
  const Windows over_rows = windows_over(rows, dx.size(2));
  const Windows over_columns = windows_over(columns, dx.size(3));
  for_each_block(dx, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    HWY_DYNAMIC_DISPATCH(gradient_of_windows)
    (begin_of(dy, sample, first), places_of(origin, sample, first), dy.size(1), over_rows, over_columns, dy.size(3),
     channels, dx.dtype(), begin_of(dx, sample, first));
  });
}

void average_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y) {
  for_each_block(x, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    const Plane in(x, sample, first);
    const Plane out(y, sample, first);
    for (std::size_t i = 0; i < rows.size() * columns.size(); ++i) {
      const Window& row = rows[i / columns.size()];
      const Window& column = columns[i % columns.size()];
      float* sum = out.at(static_cast<std::int64_t>(i));
      std::fill_n(sum, channels, 0.0F);
      for (std::int64_t r = row.begin; r < row.end; ++r) {
        for (std::int64_t c = column.begin; c < column.end; ++c) {
          const float* values = in.at(r, c);
#pragma omp simd
          for (std::int64_t k = 0; k < channels; ++k) {
            sum[k] += values[k];
          }
        }
      }
      const float factor = 1.0F / static_cast<float>(row.count * column.count);
      for (std::int64_t k = 0; k < channels; ++k) {
        sum[k] *= factor;
      }
    }
  });
}

void average_pool_gradient(const Tensor& dy, const Windows& rows, const Windows& columns, const Tensor& dx) {
  for_each_block(dx, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    const Plane out(dy, sample, first);
    const Plane in(dx, sample, first);
    for (std::int64_t i = 0; i < dx.size(2) * dx.size(3); ++i) {
      std::fill_n(in.at(i), channels, 0.0F);
    }
    for (std::size_t i = 0; i < rows.size() * columns.size(); ++i) {
      const Window& row = rows[i / columns.size()];
      const Window& column = columns[i % columns.size()];
      const float* gradient = out.at(static_cast<std::int64_t>(i));
      const float factor = 1.0F / static_cast<float>(row.count * column.count);
      for (std::int64_t r = row.begin; r < row.end; ++r) {
        for (std::int64_t c = column.begin; c < column.end; ++c) {
          float* sum = in.at(r, c);
#pragma omp simd
          for (std::int64_t k = 0; k < channels; ++k) {
            sum[k] += factor * gradient[k];
          }
        }
      }
    }
  });
}

}  // namespace vitrail::kernels
#endif  // HWY_ONCE
