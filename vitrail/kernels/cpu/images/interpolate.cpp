#include "vitrail/kernels/interpolate.h"

#include <algorithm>
#include <cmath>

#include "vitrail/kernels/parallel.h"

namespace vitrail::kernels {
namespace {

// The kernel of Keys 1981, "Cubic convolution interpolation for digital image processing", with parameter a.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  }
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

// The position in the input, in elements, that output i samples.
double source(std::int64_t i, std::int64_t in, std::int64_t out, bool align_corners, double scale) {
  if (align_corners) {
    return out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  }
  const double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  return (static_cast<double>(i) + 0.5) * step - 0.5;
}

// Resampling with antialiasing: the filter is as wide as one output element where that covers several input elements.
// Its weights are normalized over the elements that exist.
void antialiased(Resampling& axis, Filter filter, bool align_corners) {
  const auto in = static_cast<double>(axis.in);
  const double scale = align_corners ? (axis.out > 1 ? (in - 1) / static_cast<double>(axis.out - 1) : 0)
                                     : in / static_cast<double>(axis.out);
  const double width = std::max(scale, 1.0);
  const double support = (filter == Filter::cubic ? 2 : 1) * width;
  axis.taps = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(center - support + 0.5)), 0);
    const auto last = std::min(static_cast<std::int64_t>(std::floor(center + support + 0.5)), axis.in);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t k = first; k < last; ++k) {
      const double distance = (static_cast<double>(k) - center + 0.5) / width;
      weights.push_back(filter == Filter::cubic ? cubic(distance, -0.5) : triangle(distance));
      sum += weights.back();
    }
    for (std::int64_t t = 0; t < axis.taps; ++t) {
      const bool inside = t < last - first;
      axis.indices.push_back(inside ? first + t : std::min(first, axis.in - 1));
      axis.weights.push_back(inside ? static_cast<float>(weights[static_cast<std::size_t>(t)] / sum) : 0);
    }
  }
}

void linear(Resampling& axis, bool align_corners, double scale) {
  axis.taps = 2;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double at = std::max(0.0, source(i, axis.in, axis.out, align_corners, scale));
    const auto first = std::min(static_cast<std::int64_t>(at), axis.in - 1);
    const double part = std::min(at - static_cast<double>(first), 1.0);
    axis.indices.insert(axis.indices.end(), {first, std::min(first + 1, axis.in - 1)});
    axis.weights.insert(axis.weights.end(), {static_cast<float>(1 - part), static_cast<float>(part)});
  }
}

void cubic(Resampling& axis, bool align_corners, double scale) {
  axis.taps = 4;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double at = source(i, axis.in, axis.out, align_corners, scale);
    const auto base = static_cast<std::int64_t>(std::floor(at));
    for (std::int64_t k = base - 1; k <= base + 2; ++k) {
      axis.indices.push_back(std::clamp<std::int64_t>(k, 0, axis.in - 1));
      axis.weights.push_back(static_cast<float>(cubic(at - static_cast<double>(k), -0.75)));
    }
  }
}

void nearest(Resampling& axis) {
  axis.taps = 1;
  axis.weights.assign(static_cast<std::size_t>(axis.out), 1.0F);
  const float scale = static_cast<float>(axis.in) / static_cast<float>(axis.out);  // in float, as in PyTorch
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const auto index = static_cast<std::int64_t>(std::floor(static_cast<float>(i) * scale));
    axis.indices.push_back(std::min(index, axis.in - 1));
  }
}

// y[i] += w · x[i].
void add_scaled(float w, const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] += w * x[i];
  }
}

// Calls function(plane, buffer) for all planes, each on one thread; the buffer is for the result between the two axes.
template <class Function>
void for_planes(std::int64_t planes, std::int64_t work, std::int64_t buffer_size, const Function& function) {
  parallel_for(planes, (1 << 14) / std::max<std::int64_t>(work, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 std::vector<float> buffer(static_cast<std::size_t>(buffer_size));
                 for (std::int64_t plane = begin; plane < end; ++plane) {
                   function(plane, buffer.data());
                 }
               });
}

// Resamples the rows of x [n, columns.in] to y [n, columns.out].
void resample_columns(const Resampling& columns, std::int64_t n, const float* x, float* y) {
  const std::int64_t taps = columns.taps;
  for (std::int64_t row = 0; row < n; ++row, x += columns.in, y += columns.out) {
    for (std::int64_t i = 0; i < columns.out; ++i) {
      const std::int64_t* const index = columns.indices.data() + i * taps;
      const float* const weight = columns.weights.data() + i * taps;
      float sum = 0;
      for (std::int64_t t = 0; t < taps; ++t) {
        sum += weight[t] * x[index[t]];
      }
      y[i] = sum;
    }
  }
}

// The adjoint of resample_columns(): dx [n, columns.in], which is overwritten, from dy [n, columns.out].
void resample_columns_backward(const Resampling& columns, std::int64_t n, const float* dy, float* dx) {
  const std::int64_t taps = columns.taps;
  std::fill_n(dx, n * columns.in, 0.0F);
  for (std::int64_t row = 0; row < n; ++row, dx += columns.in, dy += columns.out) {
    for (std::int64_t i = 0; i < columns.out * taps; ++i) {
      dx[columns.indices[static_cast<std::size_t>(i)]] += columns.weights[static_cast<std::size_t>(i)] * dy[i / taps];
    }
  }
}

}  // namespace

Resampling resampling(std::int64_t in, std::int64_t out, Filter filter, bool antialias, bool align_corners,
                      double scale) {
  Resampling axis{in, out, 0, {}, {}};
  if (filter == Filter::nearest) {
    nearest(axis);
  } else if (antialias) {
    antialiased(axis, filter, align_corners);
  } else if (filter == Filter::linear) {
    linear(axis, align_corners, scale);
  } else {
    cubic(axis, align_corners, scale);
  }
  return axis;
}

void resample(const Resampling& rows, const Resampling& columns, std::int64_t planes, const float* x, float* y) {
  const std::int64_t width = columns.out;
  for_planes(planes, rows.in * columns.in + rows.out * width, rows.in * width, [&](std::int64_t plane, float* between) {
    resample_columns(columns, rows.in, x + plane * rows.in * columns.in, between);
    float* out = y + plane * rows.out * width;
    std::fill_n(out, rows.out * width, 0.0F);
    for (std::int64_t i = 0; i < rows.out * rows.taps; ++i) {
      const auto tap = static_cast<std::size_t>(i);
      add_scaled(rows.weights[tap], between + rows.indices[tap] * width, width, out + i / rows.taps * width);
    }
  });
}

void resample_backward(const Resampling& rows, const Resampling& columns, std::int64_t planes, const float* dy,
                       float* dx) {
  const std::int64_t width = columns.out;
  for_planes(planes, rows.in * columns.in + rows.out * width, rows.in * width, [&](std::int64_t plane, float* between) {
    const float* const from = dy + plane * rows.out * width;
    std::fill_n(between, rows.in * width, 0.0F);
    for (std::int64_t i = 0; i < rows.out * rows.taps; ++i) {
      const auto tap = static_cast<std::size_t>(i);
      add_scaled(rows.weights[tap], from + i / rows.taps * width, width, between + rows.indices[tap] * width);
    }
    resample_columns_backward(columns, rows.in, between, dx + plane * rows.in * columns.in);
  });
}

}  // namespace vitrail::kernels
