#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/batch_norm.cpp"
#include "vitrail/kernels/batch_norm.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

#ifndef VITRAIL_KERNELS_BATCH_NORM_ONCE
#define VITRAIL_KERNELS_BATCH_NORM_ONCE
namespace vitrail::kernels {

// A run of adjacent pixels in each array that a pass over memory touches; null for the arrays that it does not touch.
struct Run {
  std::int64_t pixels;
  std::int64_t channels;
  DType dtype;
  const void* x;
  const void* residual;
  const void* dy;
  void* y;
  void* dsum;
  void* dx;
};

// The function (x - mean) factor + offset of each channel, with or without a ReLU behind it.
struct Affine {
  const float* mean;
  const float* factor;
  const float* offset;
  bool relu;
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// Calls body(element, channel, part) for all elements of a run, some lanes at a time as for_lanes() does.
template <class Body>
HWY_INLINE void for_elements(const Run& run, Body&& body) {
  for (std::int64_t pixel = 0; pixel < run.pixels; ++pixel) {
    for_lanes(F32(), run.channels,
              [&](std::int64_t c, auto part) HWY_ATTR { body(pixel * run.channels + c, c, part); });
  }
}

// Runs and norms are passed by value: the compiler must assume that a store could change what is behind a reference.

// The mean of each channel over the run, and the sum of squared deviations from it; the second pass finds the run in
// the cache.
void run_statistics(Run run, float* mean, float* squares) {
  visit_floating(run.dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const T* const x = static_cast<const T*>(run.x);
    std::fill_n(mean, run.channels, 0.0F);
    std::fill_n(squares, run.channels, 0.0F);
    for_elements(run, [&](std::int64_t i, std::int64_t c, auto part)
                          HWY_ATTR { add_to(d, mean, c, load(d, x + i, part), part); });
    for (std::int64_t c = 0; c < run.channels; ++c) {
      mean[c] /= static_cast<float>(run.pixels);
    }
    for_elements(run, [&](std::int64_t i, std::int64_t c, auto part) HWY_ATTR {
      const auto centered = hn::Sub(load(d, x + i, part), load(d, mean + c, part));
      add_to(d, squares, c, hn::Mul(centered, centered), part);
    });
  });
}

void normalize(Run run, Affine norm) {
  visit_floating(run.dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const auto floor = hn::Set(d, norm.relu ? 0.0F : -std::numeric_limits<float>::infinity());
    for_elements(run, [&](std::int64_t i, std::int64_t c, auto part) HWY_ATTR {
      const auto centered = hn::Sub(load(d, static_cast<const T*>(run.x) + i, part), load(d, norm.mean + c, part));
      auto y = hn::MulAdd(centered, load(d, norm.factor + c, part), load(d, norm.offset + c, part));
      if (run.residual != nullptr) {
        y = hn::Add(y, load(d, static_cast<const T*>(run.residual) + i, part));
      }
      store(hn::IfThenElse(hn::Lt(y, floor), floor, y), d, static_cast<T*>(run.y) + i, part);  // NaN stays NaN
    });
  });
}

// The gradient of the sum that goes into the ReLU: dy where the ReLU's output is positive, else 0. The output is read
// from run.y, or computed again if that is null.
template <class T, class Part>
HWY_INLINE V<F32> gradient_of_sum(const Run& run, const Affine& norm, V<F32> centered, std::int64_t i, std::int64_t c,
                                  Part part) {
  const F32 d;
  const auto dy = load(d, static_cast<const T*>(run.dy) + i, part);
  if (!norm.relu) {
    return dy;
  }
  const auto y = run.y != nullptr
                     ? load(d, static_cast<const T*>(run.y) + i, part)
                     : hn::MulAdd(centered, load(d, norm.factor + c, part), load(d, norm.offset + c, part));
  return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy);
}

// With g = gradient_of_sum(): plain[c] = Σ g and moment[c] = Σ g (x - mean) over the run. g is stored in run.dsum
// unless that is null.
void sum_gradients(Run run, Affine norm, float* plain, float* moment) {
  visit_floating(run.dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    std::fill_n(plain, run.channels, 0.0F);
    std::fill_n(moment, run.channels, 0.0F);
    for_elements(run, [&](std::int64_t i, std::int64_t c, auto part) HWY_ATTR {
      const auto centered = hn::Sub(load(d, static_cast<const T*>(run.x) + i, part), load(d, norm.mean + c, part));
      const auto g = gradient_of_sum<T>(run, norm, centered, i, c, part);
      if (run.dsum != nullptr) {
        store(g, d, static_cast<T*>(run.dsum) + i, part);
      }
      add_to(d, plain, c, g, part);
      add_to(d, moment, c, hn::Mul(g, centered), part);
    });
  });
}

// dx = factor g - q (x - mean) - r, with g = gradient_of_sum().
void input_gradient(Run run, Affine norm, const float* q, const float* r) {
  visit_floating(run.dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    for_elements(run, [&](std::int64_t i, std::int64_t c, auto part) HWY_ATTR {
      const auto centered = hn::Sub(load(d, static_cast<const T*>(run.x) + i, part), load(d, norm.mean + c, part));
      const auto g = gradient_of_sum<T>(run, norm, centered, i, c, part);
      const auto rest = hn::MulAdd(load(d, q + c, part), centered, load(d, r + c, part));
      store(hn::MulSub(load(d, norm.factor + c, part), g, rest), d, static_cast<T*>(run.dx) + i, part);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(run_statistics);
HWY_EXPORT(normalize);
HWY_EXPORT(sum_gradients);
HWY_EXPORT(input_gradient);

// The tensors that a pass over memory touches; undefined for those that it does not touch.
struct Operands {
  Tensor x = {};
  Tensor residual = {};
  Tensor dy = {};
  Tensor y = {};
  Tensor dsum = {};
  Tensor dx = {};
};

// Images as runs of pixels, short enough for the cache and for sums in f32. The sums of the runs are added in f64 and
// in the order of the runs, whichever thread has computed them.
struct Images {
  explicit Images(const Tensor& x)
      : channels(x.size(1)),
        pixels(x.numel() / channels),
        length(std::clamp<std::int64_t>((1 << 16) / channels, 1, 256)),
        runs((pixels + length - 1) / length),
        dtype(x.dtype()) {}

  // Calls work(run, index of the run) for all runs, on all threads. If `backwards`, each thread goes from its last run
  // to its first, since what the pass before touched last may still be in the cache.
  template <class Work>
  void for_each_run(const Operands& operands, bool backwards, Work&& work) const {
    const std::int64_t grain = (1 << 14) / (std::min(length, pixels) * channels) + 1;
    parallel_for(runs, grain, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t step = begin; step < end; ++step) {
        const std::int64_t i = backwards ? begin + end - 1 - step : step;
        const auto part_of = [&](const Tensor& tensor) {
          const std::int64_t bytes = i * length * channels * static_cast<std::int64_t>(size_of(dtype));
          return tensor.defined() ? static_cast<std::byte*>(tensor.raw()) + bytes : nullptr;
        };
        work(Run{.pixels = count(i),
                 .channels = channels,
                 .dtype = dtype,
                 .x = part_of(operands.x),
                 .residual = part_of(operands.residual),
                 .dy = part_of(operands.dy),
                 .y = part_of(operands.y),
                 .dsum = part_of(operands.dsum),
                 .dx = part_of(operands.dx)},
             i);
      }
    });
  }

  std::int64_t count(std::int64_t run) const { return std::min(length, pixels - run * length); }

  std::int64_t channels;
  std::int64_t pixels;
  std::int64_t length;  // pixels of a run
  std::int64_t runs;
  DType dtype;
};

// The partial results of all runs: two numbers per run and channel.
class Gathered {
 public:
  explicit Gathered(const Images& images)
      : images_(images), values_(Tensor::empty({images.runs, 2, images.channels})) {}

  float* of(std::int64_t run, std::int64_t kind) const {
    return values_.data<float>() + (2 * run + kind) * images_.channels;
  }

  // Calls work(channel, first, second) for all channels, on all threads; first(run) and second(run) are the channel's
  // two numbers of a run.
  template <class Work>
  void for_each_channel(Work&& work) const {
    parallel_for(images_.channels, (1 << 12) / images_.runs + 1, 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t c = begin; c < end; ++c) {
        work(
            c, [&](std::int64_t run) { return static_cast<double>(of(run, 0)[c]); },
            [&](std::int64_t run) { return static_cast<double>(of(run, 1)[c]); });
      }
    });
  }

 private:
  const Images& images_;
  Tensor values_;
};

Tensor product(const Tensor& a, const Tensor& b) {
  const Tensor result = Tensor::empty(a.shape());
  std::ranges::transform(a.span<float>(), b.span<float>(), result.span<float>().begin(), std::multiplies<>());
  return result;
}

}  // namespace

void batch_statistics(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const Images images(x);
  const Gathered gathered(images);
  images.for_each_run({.x = x}, true, [&](const Run& run, std::int64_t i) {
    HWY_DYNAMIC_DISPATCH(run_statistics)(run, gathered.of(i, 0), gathered.of(i, 1));
  });
  const auto number = static_cast<double>(images.pixels);
  gathered.for_each_channel([&](std::int64_t c, auto means, auto squares) {
    double sum = 0;
    for (std::int64_t i = 0; i < images.runs; ++i) {
      sum += static_cast<double>(images.count(i)) * means(i);
    }
    const double center = sum / number;
    double total = 0;  // sum of squared deviations from the common mean
    for (std::int64_t i = 0; i < images.runs; ++i) {
      total += squares(i) + static_cast<double>(images.count(i)) * (means(i) - center) * (means(i) - center);
    }
    mean.data<float>()[c] = static_cast<float>(center);
    variance.data<float>()[c] = static_cast<float>(total / number);
  });
  Profile::traffic(x.numel(), x.dtype(), 1);
}

void batch_norm(const BatchNorm& norm, const Tensor& x, const Tensor& residual, const Tensor& y) {
  const Images images(x);
  const Tensor factor = product(norm.weight, norm.rstd);
  const Affine affine{norm.mean.data<float>(), factor.data<float>(), norm.bias.data<float>(), norm.relu};
  images.for_each_run({.x = x, .residual = residual, .y = y}, false, [&](const Run& run, std::int64_t) {
    HWY_DYNAMIC_DISPATCH(normalize)(run, affine);
  });
  Profile::traffic(x.numel(), x.dtype(), residual.defined() ? 3 : 2);
}

// With g the gradient of the ReLU's input, x̂ = (x - mean) rstd, n values per channel, and sums over these values,
//   dx = weight rstd (g - Σ g / n - x̂ Σ g x̂ / n),   dweight = Σ g x̂,   dbias = Σ g;
// dx is weight rstd g where mean and rstd are constants (Ioffe & Szegedy 2015).
void batch_norm_gradient(const BatchNorm& norm, const Tensor& x, const Tensor& y, const Tensor& dy, bool statistics,
                         const Tensor& dsum, const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         const BatchSum* batch) {
  check(dy.dtype() == x.dtype() && dy.shape() == x.shape(), "batch_norm: the gradient of {} {} cannot be {} {}",
        x.shape(), name_of(x.dtype()), dy.shape(), name_of(dy.dtype()));
  const Images images(x);
  const Tensor factor = product(norm.weight, norm.rstd);
  Affine affine{norm.mean.data<float>(), factor.data<float>(), norm.bias.data<float>(), norm.relu};
  const Tensor q = Tensor::zeros(factor.shape());
  const Tensor r = Tensor::zeros(factor.shape());
  if (statistics || dsum.defined() || dweight.defined() || dbias.defined()) {
    const Gathered gathered(images);
    images.for_each_run({.x = x, .dy = dy, .y = y, .dsum = dsum}, true, [&](const Run& run, std::int64_t i) {
      HWY_DYNAMIC_DISPATCH(sum_gradients)(run, affine, gathered.of(i, 0), gathered.of(i, 1));
    });
    std::vector<double> sums(static_cast<std::size_t>(1 + 2 * images.channels));  // n, and for each channel Σ g, Σ g x̂
    sums[0] = static_cast<double>(images.pixels);
    gathered.for_each_channel([&](std::int64_t c, auto plain, auto moment) {
      double sum = 0;
      double normal = 0;
      for (std::int64_t i = 0; i < images.runs; ++i) {
        sum += plain(i);
        normal += moment(i);
      }
      normal *= static_cast<double>(norm.rstd.data<float>()[c]);
      if (dbias.defined()) {
        dbias.data<float>()[c] = static_cast<float>(sum);
      }
      if (dweight.defined()) {
        dweight.data<float>()[c] = static_cast<float>(normal);
      }
      sums[static_cast<std::size_t>(1 + 2 * c)] = sum;
      sums[static_cast<std::size_t>(2 + 2 * c)] = normal;
    });
    if (statistics && batch != nullptr) {
      (*batch)(sums);
    }
    for (std::int64_t c = 0; statistics && c < images.channels; ++c) {
      const double scale = static_cast<double>(factor.data<float>()[c]) / sums[0];
      const double normal = sums[static_cast<std::size_t>(2 + 2 * c)];
      q.data<float>()[c] = static_cast<float>(scale * normal * static_cast<double>(norm.rstd.data<float>()[c]));
      r.data<float>()[c] = static_cast<float>(scale * sums[static_cast<std::size_t>(1 + 2 * c)]);
    }
    Profile::traffic(x.numel(), x.dtype(), dsum.defined() ? 4 : 2);
  }
  if (dx.defined()) {
    // dsum is already the gradient of the ReLU's input.
    affine.relu = norm.relu && !dsum.defined();
    const Tensor& gradient = dsum.defined() ? dsum : dy;
    images.for_each_run({.x = x, .dy = gradient, .dx = dx}, false, [&](const Run& run, std::int64_t) {
      HWY_DYNAMIC_DISPATCH(input_gradient)(run, affine, q.data<float>(), r.data<float>());
    });
    Profile::traffic(x.numel(), x.dtype(), 3);
  }
}

}  // namespace vitrail::kernels
#endif  // HWY_ONCE
