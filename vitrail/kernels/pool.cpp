#include "vitrail/kernels/pool.h"

#include <algorithm>
#include <limits>

#include "vitrail/kernels/parallel.h"

namespace vitrail::kernels {
namespace {

constexpr std::int64_t block = 64;  // channels that are worked on together

// A picture's channels [first, first + channels) in channels-last memory.
template <class T>
struct Plane {
  Plane(const Tensor& x, std::int64_t sample, std::int64_t first)
      : data(x.data<T>() + sample * x.size(1) * x.size(2) * x.size(3) + first), pixel(x.size(1)), width(x.size(3)) {}
  T* at(std::int64_t row, std::int64_t column) const { return data + (row * width + column) * pixel; }
  T* at(std::int64_t place) const { return data + place * pixel; }
  T* data;
  std::int64_t pixel, width;
};

// Calls work(sample, first channel, channels) for all samples and blocks of channels, shared among the threads. Each
// works on memory of its own, so overlapping windows need no order.
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

}  // namespace

void max_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y, const Tensor& origin) {
  for_each_block(x, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    const Plane<float> in(x, sample, first);
    const Plane<float> out(y, sample, first);
    const Plane<std::int32_t> from(origin, sample, first);
    for (std::size_t i = 0; i < rows.size() * columns.size(); ++i) {
      const Window& row = rows[i / columns.size()];
      const Window& column = columns[i % columns.size()];
      float* best = out.at(static_cast<std::int64_t>(i));
      std::int32_t* place = from.at(static_cast<std::int64_t>(i));
      std::fill_n(best, channels, -std::numeric_limits<float>::infinity());
      std::fill_n(place, channels, static_cast<std::int32_t>(row.begin * in.width + column.begin));
      for (std::int64_t r = row.begin; r < row.end; ++r) {
        for (std::int64_t c = column.begin; c < column.end; ++c) {
          const float* values = in.at(r, c);
          const auto here = static_cast<std::int32_t>(r * in.width + c);
#pragma omp simd
          for (std::int64_t k = 0; k < channels; ++k) {
            const bool larger = values[k] > best[k] || values[k] != values[k];
            best[k] = larger ? values[k] : best[k];
            place[k] = larger ? here : place[k];
          }
        }
      }
    }
  });
}

void max_pool_gradient(const Tensor& dy, const Tensor& origin, const Tensor& dx) {
  for_each_block(dx, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    const Plane<float> out(dy, sample, first);
    const Plane<float> in(dx, sample, first);
    const Plane<std::int32_t> from(origin, sample, first);
    for (std::int64_t i = 0; i < dx.size(2) * dx.size(3); ++i) {
      std::fill_n(in.at(i), channels, 0.0F);
    }
    for (std::int64_t i = 0; i < dy.size(2) * dy.size(3); ++i) {
      const float* gradient = out.at(i);
      const std::int32_t* place = from.at(i);
      for (std::int64_t k = 0; k < channels; ++k) {
        in.at(place[k])[k] += gradient[k];
      }
    }
  });
}

void average_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y) {
  for_each_block(x, [&](std::int64_t sample, std::int64_t first, std::int64_t channels) {
    const Plane<float> in(x, sample, first);
    const Plane<float> out(y, sample, first);
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
    const Plane<float> out(dy, sample, first);
    const Plane<float> in(dx, sample, first);
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
