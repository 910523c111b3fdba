#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/group_norm.cpp"
#include "vitrail/kernels/group_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// sums[c] += Σ x over the pixels
void sum_values(const void* x, std::int64_t pixels, std::int64_t channels, DType dtype, float* sums) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for (const T* row = static_cast<const T*>(x); pixels > 0; --pixels, row += channels) {
      for_lanes(d, channels,
                [&](std::int64_t c, auto part) HWY_ATTR { add_to(d, sums, c, load(d, row + c, part), part); });
    }
  });
}

// sums[c] += Σ (x - mean)²
void sum_squares(const void* x, const float* mean, std::int64_t pixels, std::int64_t channels, DType dtype,
                 float* sums) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for (const T* row = static_cast<const T*>(x); pixels > 0; --pixels, row += channels) {
      for_lanes(d, channels, [&](std::int64_t c, auto part) HWY_ATTR {
        const auto centered = hn::Sub(load(d, row + c, part), load(d, mean + c, part));
        add_to(d, sums, c, hn::Mul(centered, centered), part);
      });
    }
  });
}

// plain[c] += Σ dy, centered[c] += Σ dy (x - mean)
void sum_gradients(const void* x, const void* dy, const float* mean, std::int64_t pixels, std::int64_t channels,
                   DType dtype, float* plain, float* centered) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for (std::int64_t at = 0; at < pixels * channels; at += channels) {
      for_lanes(d, channels, [&](std::int64_t c, auto part) HWY_ATTR {
        const auto g = load(d, static_cast<const T*>(dy) + at + c, part);
        const auto value = load(d, static_cast<const T*>(x) + at + c, part);
        add_to(d, plain, c, g, part);
        add_to(d, centered, c, hn::Mul(g, hn::Sub(value, load(d, mean + c, part))), part);
      });
    }
  });
}

// y = (x - mean) a + b
void scale_pixels(const void* x, const float* mean, const float* a, const float* b, std::int64_t pixels,
                  std::int64_t channels, DType dtype, void* y) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      const std::int64_t at = pixel * channels;
      for_lanes(d, channels, [&](std::int64_t c, auto part) HWY_ATTR {
        const auto centered = hn::Sub(load(d, static_cast<const T*>(x) + at + c, part), load(d, mean + c, part));
        store(hn::MulAdd(centered, load(d, a + c, part), load(d, b + c, part)), d, static_cast<T*>(y) + at + c, part);
      });
    }
  });
}

// dx = p dy - q (x - mean) - r
void gradient_of_pixels(const void* x, const void* dy, const float* mean, const float* p, const float* q,
                        const float* r, std::int64_t pixels, std::int64_t channels, DType dtype, void* dx) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      const std::int64_t at = pixel * channels;
      for_lanes(d, channels, [&](std::int64_t c, auto part) HWY_ATTR {
        const auto centered = hn::Sub(load(d, static_cast<const T*>(x) + at + c, part), load(d, mean + c, part));
        const auto g = hn::Mul(load(d, p + c, part), load(d, static_cast<const T*>(dy) + at + c, part));
        const auto rest = hn::MulAdd(load(d, q + c, part), centered, load(d, r + c, part));
        store(hn::Sub(g, rest), d, static_cast<T*>(dx) + at + c, part);
      });
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(sum_values);
HWY_EXPORT(sum_squares);
HWY_EXPORT(sum_gradients);
HWY_EXPORT(scale_pixels);
HWY_EXPORT(gradient_of_pixels);

constexpr std::int64_t run = 256;  // pixels that are summed in f32

// Calls function(sample, index of the run, number of pixels, first element) for every run of pixels of every sample, on
// all threads.
template <class Function>
void for_runs(const GroupNorm& norm, Function&& function) {
  const std::int64_t runs = (norm.pixels + run - 1) / run;
  const std::int64_t grain = (1 << 15) / (std::min(run, norm.pixels) * norm.channels) + 1;
  parallel_for(norm.samples * runs, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sample = i / runs;
      const std::int64_t pixel = i % runs * run;
      function(sample, i, std::min(run, norm.pixels - pixel), (sample * norm.pixels + pixel) * norm.channels);
    }
  });
}

// Sums over the pixels of each sample: `kinds` sums for each channel, [samples, kinds, channels].
// `add(sample, pixels, element, sums)` adds those of a run of `pixels` pixels, which begins at `element`, to sums
// [kinds, channels].
template <class Add>
std::vector<double> sums_over_pixels(const GroupNorm& norm, std::int64_t kinds, Add&& add) {
  const std::int64_t runs = (norm.pixels + run - 1) / run;
  const std::int64_t width = kinds * norm.channels;
  std::vector<float> parts(static_cast<std::size_t>(norm.samples * runs * width));
  for_runs(norm, [&](std::int64_t sample, std::int64_t i, std::int64_t pixels, std::int64_t element) {
    add(sample, pixels, element, parts.data() + i * width);
  });
  std::vector<double> sums(static_cast<std::size_t>(norm.samples * width));
  for (std::int64_t i = 0; i < norm.samples * runs; ++i) {
    double* const to = sums.data() + i / runs * width;
    for (std::int64_t c = 0; c < width; ++c) {
      to[c] += static_cast<double>(parts[static_cast<std::size_t>(i * width + c)]);
    }
  }
  return sums;
}

// One number for each sample and channel.
class PerChannel {
 public:
  explicit PerChannel(const GroupNorm& norm)
      : channels_(norm.channels), values_(static_cast<std::size_t>(norm.samples * norm.channels)) {}
  float* of(std::int64_t sample) { return values_.data() + sample * channels_; }
  const float* of(std::int64_t sample) const { return values_.data() + sample * channels_; }

 private:
  std::int64_t channels_;
  std::vector<float> values_;
};

// Calls function(sample, channel, group) for all samples and channels; groups are counted through all samples.
template <class Function>
void for_channels(const GroupNorm& norm, Function&& function) {
  for (std::int64_t sample = 0; sample < norm.samples; ++sample) {
    for (std::int64_t c = 0; c < norm.channels; ++c) {
      function(sample, c, sample * norm.groups + c / (norm.channels / norm.groups));
    }
  }
}

// Repeats the number of each group for its channels.
PerChannel spread(const GroupNorm& norm, const float* of_groups) {
  PerChannel result(norm);
  for_channels(
      norm, [&](std::int64_t sample, std::int64_t c, std::int64_t group) { result.of(sample)[c] = of_groups[group]; });
  return result;
}

const std::byte* at(const void* data, std::int64_t element, DType dtype) {
  return static_cast<const std::byte*>(data) + element * static_cast<std::int64_t>(size_of(dtype));
}
std::byte* at(void* data, std::int64_t element, DType dtype) {
  return static_cast<std::byte*>(data) + element * static_cast<std::int64_t>(size_of(dtype));
}

double group_size(const GroupNorm& norm) {
  return static_cast<double>(norm.pixels) * static_cast<double>(norm.channels) / static_cast<double>(norm.groups);
}

float value_or(const float* values, std::int64_t i, float fallback) { return values == nullptr ? fallback : values[i]; }

// The mean of each group, [samples, groups], from the sums of its channels, [samples, channels].
std::vector<double> group_means(const GroupNorm& norm, const std::vector<double>& sums) {
  std::vector<double> means(static_cast<std::size_t>(norm.samples * norm.groups));
  for_channels(norm, [&](std::int64_t sample, std::int64_t c, std::int64_t group) {
    means[static_cast<std::size_t>(group)] += sums[static_cast<std::size_t>(sample * norm.channels + c)];
  });
  for (double& mean : means) {
    mean /= group_size(norm);
  }
  return means;
}

}  // namespace

void group_norm_forward(const GroupNorm& norm, const void* x, const float* weight, const float* bias, float eps,
                        void* y, float* mean, float* rstd) {
  const std::int64_t channels = norm.channels;
  const std::vector<double> means = group_means(
      norm, sums_over_pixels(norm, 1, [&](std::int64_t, std::int64_t pixels, std::int64_t element, float* to) {
        HWY_DYNAMIC_DISPATCH(sum_values)(at(x, element, norm.dtype), pixels, channels, norm.dtype, to);
      }));
  std::ranges::transform(means, mean, [](double value) { return static_cast<float>(value); });
  const PerChannel centers = spread(norm, mean);
  const std::vector<double> variances = group_means(
      norm, sums_over_pixels(norm, 1, [&](std::int64_t sample, std::int64_t pixels, std::int64_t element, float* to) {
        HWY_DYNAMIC_DISPATCH(sum_squares)
        (at(x, element, norm.dtype), centers.of(sample), pixels, channels, norm.dtype, to);
      }));
  std::ranges::transform(variances, rstd, [eps](double variance) {
    return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(eps)));
  });
  PerChannel factors(norm);
  PerChannel offsets(norm);
  for_channels(norm, [&](std::int64_t sample, std::int64_t c, std::int64_t group) {
    factors.of(sample)[c] = rstd[group] * value_or(weight, c, 1);
    offsets.of(sample)[c] = value_or(bias, c, 0);
  });
  for_runs(norm, [&](std::int64_t sample, std::int64_t, std::int64_t pixels, std::int64_t element) {
    HWY_DYNAMIC_DISPATCH(scale_pixels)
    (at(x, element, norm.dtype), centers.of(sample), factors.of(sample), offsets.of(sample), pixels, channels,
     norm.dtype, at(y, element, norm.dtype));
  });
}

// With x̂ = (x - mean) rstd, w the weight, n elements in a group, and the sums in dx over a group,
//   dx = rstd (w dy - Σ w dy / n - x̂ Σ w dy x̂ / n),   dweight = Σ dy x̂,   dbias = Σ dy.
void group_norm_backward(const GroupNorm& norm, const void* x, const float* weight, const float* mean,
                         const float* rstd, const void* dy, void* dx, float* dweight, float* dbias) {
  const std::int64_t channels = norm.channels;
  const PerChannel centers = spread(norm, mean);
  const std::vector<double> sums =
      sums_over_pixels(norm, 2, [&](std::int64_t sample, std::int64_t pixels, std::int64_t element, float* to) {
        HWY_DYNAMIC_DISPATCH(sum_gradients)
        (at(x, element, norm.dtype), at(dy, element, norm.dtype), centers.of(sample), pixels, channels, norm.dtype, to,
         to + channels);
      });
  std::vector<double> plain(static_cast<std::size_t>(norm.samples * channels));  // Σ w dy
  std::vector<double> normal(plain.size());                                      // Σ w dy x̂
  std::vector<double> bias_sums(static_cast<std::size_t>(channels));
  std::vector<double> weight_sums(static_cast<std::size_t>(channels));
  for_channels(norm, [&](std::int64_t sample, std::int64_t c, std::int64_t group) {
    const double gradient = sums[static_cast<std::size_t>(2 * sample * channels + c)];
    const double normalized =
        sums[static_cast<std::size_t>((2 * sample + 1) * channels + c)] * static_cast<double>(rstd[group]);
    const double w = static_cast<double>(value_or(weight, c, 1));
    plain[static_cast<std::size_t>(sample * channels + c)] = w * gradient;
    normal[static_cast<std::size_t>(sample * channels + c)] = w * normalized;
    bias_sums[static_cast<std::size_t>(c)] += gradient;
    weight_sums[static_cast<std::size_t>(c)] += normalized;
  });
  const auto narrow = [](double value) { return static_cast<float>(value); };
  if (dweight != nullptr) {
    std::ranges::transform(weight_sums, dweight, narrow);
  }
  if (dbias != nullptr) {
    std::ranges::transform(bias_sums, dbias, narrow);
  }
  if (dx == nullptr) {
    return;
  }
  const std::vector<double> plain_means = group_means(norm, plain);
  const std::vector<double> normal_means = group_means(norm, normal);
  PerChannel p(norm);
  PerChannel q(norm);
  PerChannel r(norm);
  for_channels(norm, [&](std::int64_t sample, std::int64_t c, std::int64_t group) {
    const auto scale = static_cast<double>(rstd[group]);
    p.of(sample)[c] = rstd[group] * value_or(weight, c, 1);
    q.of(sample)[c] = narrow(scale * scale * normal_means[static_cast<std::size_t>(group)]);
    r.of(sample)[c] = narrow(scale * plain_means[static_cast<std::size_t>(group)]);
  });
  for_runs(norm, [&](std::int64_t sample, std::int64_t, std::int64_t pixels, std::int64_t element) {
    HWY_DYNAMIC_DISPATCH(gradient_of_pixels)
    (at(x, element, norm.dtype), at(dy, element, norm.dtype), centers.of(sample), p.of(sample), q.of(sample),
     r.of(sample), pixels, channels, norm.dtype, at(dx, element, norm.dtype));
  });
}

}  // namespace vitrail::kernels
#endif
