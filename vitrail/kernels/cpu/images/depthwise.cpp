#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/images/depthwise.cpp"
#include "vitrail/kernels/depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/cpu/simd/thread_sums.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

#ifndef VITRAIL_KERNELS_DEPTHWISE_ONCE
#define VITRAIL_KERNELS_DEPTHWISE_ONCE
namespace vitrail::kernels {

// A tap: a position of the kernel, and the token that it meets.
struct Tap {
  std::int64_t token;
  std::int64_t place;
};

// A run of tokens along a row of `to`. Their taps are those of the first, `from_step` elements further for each next
// token.
struct TokenRun {
  std::int64_t count;               // number of tokens
  std::int64_t from_step, to_step;  // elements from one token of the run to the next, on both sides
  std::int64_t token_stride;        // elements from one token to the next on the side of the taps
  const Tap* taps;
  std::int64_t tap_count;
  std::int64_t channels;
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// to[t, c] = Σ_taps weight[place, c] from[token of the tap at t, c] for one vector of channels and kTaps taps, with the
// weights in registers.
template <int kTaps, class T, class Part>
HWY_INLINE void gather_some(const TokenRun& run, const T* from, const float* weight, std::int64_t c, Part part, T* to) {
  const F32 d;
  V<F32> w[kTaps];
  const T* x[kTaps];
  for (int i = 0; i < kTaps; ++i) {
    w[i] = load(d, weight + run.taps[i].place * run.channels + c, part);
    x[i] = from + run.taps[i].token * run.token_stride + c;
  }
  for (std::int64_t t = 0; t < run.count; ++t) {
    auto sum = hn::Zero(d);
    for (int i = 0; i < kTaps; ++i) {
      sum = hn::MulAdd(load(d, x[i] + t * run.from_step, part), w[i], sum);
    }
    store(sum, d, to + t * run.to_step + c, part);
  }
}

// gather_some() for any number of taps, with the weights in memory.
template <class T, class Part>
HWY_INLINE void gather_any(const TokenRun& run, const T* from, const float* weight, std::int64_t c, Part part, T* to) {
  const F32 d;
  for (std::int64_t t = 0; t < run.count; ++t) {
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < run.tap_count; ++i) {
      sum = hn::MulAdd(load(d, from + run.taps[i].token * run.token_stride + t * run.from_step + c, part),
                       load(d, weight + run.taps[i].place * run.channels + c, part), sum);
    }
    store(sum, d, to + t * run.to_step + c, part);
  }
}

template <class T>
void gather_typed(const TokenRun& run, const T* from, const float* weight, T* to) {
  for_lanes(F32(), run.channels, [&](std::int64_t c, auto part) HWY_ATTR {
    switch (run.tap_count) {  // those of a 3 x 3 kernel, inside and at the borders
      case 1:
        return gather_some<1>(run, from, weight, c, part, to);
      case 2:
        return gather_some<2>(run, from, weight, c, part, to);
      case 4:
        return gather_some<4>(run, from, weight, c, part, to);
      case 6:
        return gather_some<6>(run, from, weight, c, part, to);
      case 9:
        return gather_some<9>(run, from, weight, c, part, to);
      default:
        return gather_any(run, from, weight, c, part, to);
    }
  });
}

// sums[place, c] += Σ_t dy[t, c] from[token of the tap at t, c] for one vector of channels and the kTaps taps from
// `first` on, with the sums in registers.
template <int kTaps, class T, class Part>
HWY_INLINE void scatter_some(const TokenRun& run, const T* from, const T* dy, std::int64_t first, std::int64_t c,
                             Part part, float* sums) {
  const F32 d;
  const Tap* taps = run.taps + first;
  V<F32> sum[kTaps];
  const T* x[kTaps];
  for (int i = 0; i < kTaps; ++i) {
    sum[i] = load(d, sums + taps[i].place * run.channels + c, part);
    x[i] = from + taps[i].token * run.token_stride + c;
  }
  for (std::int64_t t = 0; t < run.count; ++t) {
    const auto g = load(d, dy + t * run.to_step + c, part);
    for (int i = 0; i < kTaps; ++i) {
      sum[i] = hn::MulAdd(g, load(d, x[i] + t * run.from_step, part), sum[i]);
    }
  }
  for (int i = 0; i < kTaps; ++i) {
    store(sum[i], d, sums + taps[i].place * run.channels + c, part);
  }
}

template <class T>
void scatter_typed(const TokenRun& run, const T* from, const T* dy, float* sums) {
  for_lanes(F32(), run.channels, [&](std::int64_t c, auto part) HWY_ATTR {
    std::int64_t i = 0;
    for (; i + 9 <= run.tap_count; i += 9) {
      scatter_some<9>(run, from, dy, i, c, part, sums);
    }
    for (; i + 2 <= run.tap_count; i += 2) {
      scatter_some<2>(run, from, dy, i, c, part, sums);
    }
    if (i < run.tap_count) {
      scatter_some<1>(run, from, dy, i, c, part, sums);
    }
  });
}

void gather_run(const TokenRun& run, DType dtype, const void* from, const float* weight, void* to) {
  visit_floating(
      dtype, [&]<class T>(T) HWY_ATTR { gather_typed(run, static_cast<const T*>(from), weight, static_cast<T*>(to)); });
}

void scatter_run(const TokenRun& run, DType dtype, const void* from, const void* dy, float* sums) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    scatter_typed(run, static_cast<const T*>(from), static_cast<const T*>(dy), sums);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {

HWY_EXPORT(gather_run);
HWY_EXPORT(scatter_run);

using Size3 = std::array<std::int64_t, 3>;
using Taps = std::vector<Tap>;

std::int64_t count_of(const Size3& grid) { return grid[0] * grid[1] * grid[2]; }

// The taps along one axis for each position of the result: positions of the input and of the kernel.
std::vector<Taps> forward_axis(const DepthwiseGeometry& g, std::size_t axis) {
  std::vector<Taps> result(static_cast<std::size_t>(g.output[axis]));
  for (std::int64_t o = 0; o < g.output[axis]; ++o) {
    for (std::int64_t k = 0; k < g.kernel[axis]; ++k) {
      const std::int64_t i = o * g.stride[axis] + k - g.padding[axis];
      if (i >= 0 && i < g.input[axis]) {
        result[static_cast<std::size_t>(o)].push_back({i, k});
      }
    }
  }
  return result;
}

// The taps along one axis for each position of the input: positions of the result and of the kernel.
std::vector<Taps> backward_axis(const DepthwiseGeometry& g, std::size_t axis) {
  std::vector<Taps> result(static_cast<std::size_t>(g.input[axis]));
  const std::vector<Taps> forward = forward_axis(g, axis);
  for (std::size_t o = 0; o < forward.size(); ++o) {
    for (const Tap& tap : forward[o]) {
      result[static_cast<std::size_t>(tap.token)].push_back({static_cast<std::int64_t>(o), tap.place});
    }
  }
  return result;
}

// The columns first, first + stride, …, `count` of them, whose taps advance by `step` tokens from one to the next.
struct ColumnRun {
  std::int64_t first, count, stride, step;
};

// Divides the columns of a row into runs. Columns that are `stride` apart have the same taps, but for those at the
// borders; `stride` is 1 on the side of the result, and the convolution's stride on the side of its input.
std::vector<ColumnRun> runs_of(const std::vector<Taps>& columns, std::int64_t stride) {
  std::vector<ColumnRun> runs;
  const auto size = static_cast<std::int64_t>(columns.size());
  for (std::int64_t phase = 0; phase < std::min(stride, size); ++phase) {
    for (std::int64_t column = phase; column < size; column += stride) {
      const Taps& taps = columns[static_cast<std::size_t>(column)];
      ColumnRun* run = runs.empty() || column == phase ? nullptr : &runs.back();
      if (run != nullptr) {
        const Taps& before = columns[static_cast<std::size_t>(column - stride)];
        const std::int64_t step = taps.empty() || before.empty() ? 0 : taps[0].token - before[0].token;
        const bool same = std::ranges::equal(taps, before, [step](const Tap& a, const Tap& b) {
          return a.place == b.place && a.token == b.token + step;
        });
        if (same && (run->count == 1 || run->step == step)) {
          run->step = step;
          ++run->count;
          continue;
        }
      }
      runs.push_back({column, 1, stride, 0});
    }
  }
  return runs;
}

// One side of the convolution, its result or its input, with the taps of each of its frames, rows and columns on the
// other side.
struct Side {
  Side(const DepthwiseGeometry& g, bool results)
      : grid(results ? g.output : g.input), other(results ? g.input : g.output) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      axes[axis] = results ? forward_axis(g, axis) : backward_axis(g, axis);
    }
    runs = runs_of(axes[2], results ? 1 : g.stride[2]);
  }
  Size3 grid, other;
  std::array<std::vector<Taps>, 3> axes;
  std::vector<ColumnRun> runs;
};

// Sets `taps` to those of the first token of a run, by joining the taps of its frame, row and column.
void join(const Taps& frames, const Taps& rows, const Taps& columns, const Size3& other, const DepthwiseGeometry& g,
          Taps& taps) {
  taps.clear();
  for (const Tap& t : frames) {
    for (const Tap& r : rows) {
      const std::int64_t token = g.prefix + (t.token * other[1] + r.token) * other[2];
      const std::int64_t place = (t.place * g.kernel[1] + r.place) * g.kernel[2];
      for (const Tap& c : columns) {
        taps.push_back({token + c.token, place + c.place});
      }
    }
  }
}

std::byte* at(const Tensor& x, std::int64_t sample, std::int64_t token) {
  return x.raw() + static_cast<std::size_t>(sample * x.stride(0) + token * x.stride(1)) * size_of(x.dtype());
}

// Calls work(sample, first token, run, thread) for all runs of tokens of `to`, which is on `side`; their taps are
// tokens of `from`, on the other side.
template <class Work>
void for_each_run(const DepthwiseGeometry& g, const Side& side, const Tensor& from, const Tensor& to, Work&& work) {
  const std::int64_t channels = from.size(2);
  const auto [frames, rows, columns] = side.grid;
  const std::int64_t grain = rows_worth_a_thread(channels * columns * 4);
  parallel_for(to.size(0) * frames * rows, grain,
               [&, frames = frames, rows = rows, columns = columns](std::int64_t begin, std::int64_t end, int thread) {
                 Taps taps;
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t line = i % (frames * rows);
                   for (const ColumnRun& run : side.runs) {
                     join(side.axes[0][static_cast<std::size_t>(line / rows)],
                          side.axes[1][static_cast<std::size_t>(line % rows)],
                          side.axes[2][static_cast<std::size_t>(run.first)], side.other, g, taps);
                     work(i / (frames * rows), g.prefix + line * columns + run.first,
                          TokenRun{run.count, run.step * from.stride(1), run.stride * to.stride(1), from.stride(1),
                                   taps.data(), static_cast<std::int64_t>(taps.size()), channels},
                          thread);
                   }
                 }
               });
}

// Copies the tokens in front of the grid.
void copy_prefix(const Tensor& from, const Tensor& to, std::int64_t prefix) {
  const std::size_t bytes = static_cast<std::size_t>(from.size(2)) * size_of(from.dtype());
  for (std::int64_t b = 0; b < from.size(0); ++b) {
    for (std::int64_t i = 0; i < prefix; ++i) {
      std::memcpy(at(to, b, i), at(from, b, i), bytes);
    }
  }
}

void count_work(const Tensor& from, const Tensor& to, const DepthwiseGeometry& g) {
  Profile::traffic(from.numel() + to.numel(), from.dtype(), 1);
  Profile::flops(2.0 * static_cast<double>(from.size(0) * count_of(g.output) * count_of(g.kernel) * from.size(2)));
}

// Computes each token of `to`, which is on `side`, from its taps, which are tokens of `from`, on the other side.
void gather(const Tensor& from, const Tensor& weight, const DepthwiseGeometry& g, const Side& side, const Tensor& to) {
  count_work(from, to, g);
  copy_prefix(from, to, g.prefix);
  for_each_run(g, side, from, to, [&](std::int64_t sample, std::int64_t token, const TokenRun& run, int) {
    HWY_DYNAMIC_DISPATCH(gather_run)
    (run, from.dtype(), at(from, sample, 0), weight.data<float>(), at(to, sample, token));
  });
}

}  // namespace

void depthwise(const Tensor& x, const Tensor& weight, const DepthwiseGeometry& g, const Tensor& y) {
  gather(x, weight, g, Side(g, true), y);
}

void depthwise_input_gradient(const Tensor& dy, const Tensor& weight, const DepthwiseGeometry& g, const Tensor& dx) {
  gather(dy, weight, g, Side(g, false), dx);
}

void depthwise_weight_gradient(const Tensor& x, const Tensor& dy, const DepthwiseGeometry& g, const Tensor& dweight) {
  count_work(x, dy, g);
  ThreadSums sums(dweight.data<float>(), dweight.numel(), omp_get_max_threads());
  for_each_run(g, Side(g, true), x, dy, [&](std::int64_t sample, std::int64_t token, const TokenRun& run, int thread) {
    HWY_DYNAMIC_DISPATCH(scatter_run)
    (run, x.dtype(), at(x, sample, 0), at(dy, sample, token), sums.at(thread));
  });
  sums.gather();
}

}  // namespace vitrail::kernels
#endif
