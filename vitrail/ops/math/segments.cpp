#include "vitrail/ops/math/segments.h"

#include <algorithm>
#include <span>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::ops {
namespace {

// Calls function(s, begin, end) for all segments of rows [begin, end).
template <class Function>
void for_segments(std::span<const std::int64_t> offsets, std::int64_t columns, const Function& function) {
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  const std::int64_t rows = (offsets.back() - offsets.front()) / std::max<std::int64_t>(count, 1);
  kernels::parallel_for(count, kernels::rows_worth_a_thread(rows * columns),
                        [&](std::int64_t first, std::int64_t last, int /*thread*/) {
                          for (std::int64_t s = first; s < last; ++s) {
                            function(s, offsets[static_cast<std::size_t>(s)], offsets[static_cast<std::size_t>(s + 1)]);
                          }
                        });
}

// The factor of a segment's sum.
float share(SegmentReduction reduction, std::int64_t rows) {
  return reduction == SegmentReduction::mean ? 1 / static_cast<float>(rows) : 1.0F;
}

void reduce_segments(SegmentReduction reduction, const float* x, std::span<const std::int64_t> offsets,
                     std::int64_t columns, float* y) {
  Profile::traffic((offsets.back() + std::ssize(offsets)) * columns, DType::f32, 1);
  for_segments(offsets, columns, [&](std::int64_t s, std::int64_t begin, std::int64_t end) {
    float* const out = y + s * columns;
    std::copy_n(x + begin * columns, columns, out);
    for (std::int64_t row = begin + 1; row < end; ++row) {
      const float* const in = x + row * columns;
      for (std::int64_t c = 0; c < columns; ++c) {
        out[c] = reduction == SegmentReduction::max ? std::max(out[c], in[c]) : out[c] + in[c];
      }
    }
    if (reduction == SegmentReduction::mean) {
      const float factor = share(reduction, end - begin);
      std::for_each_n(out, columns, [factor](float& value) { value *= factor; });
    }
  });
}

void reduce_segments_gradient(SegmentReduction reduction, const float* x, const float* y, const float* dy,
                              std::span<const std::int64_t> offsets, std::int64_t columns, float* dx) {
  Profile::traffic((offsets.back() + std::ssize(offsets)) * columns, DType::f32, 1);
  for_segments(offsets, columns, [&](std::int64_t s, std::int64_t begin, std::int64_t end) {
    const float* const in = dy + s * columns;
    if (reduction != SegmentReduction::max) {
      const float factor = share(reduction, end - begin);
      for (std::int64_t row = begin; row < end; ++row) {
        std::transform(in, in + columns, dx + row * columns, [factor](float value) { return factor * value; });
      }
      return;
    }
    std::fill(dx + begin * columns, dx + end * columns, 0.0F);
    for (std::int64_t c = 0; c < columns; ++c) {
      std::int64_t row = begin;
      while (row + 1 < end && x[row * columns + c] != y[s * columns + c]) {
        ++row;
      }
      dx[row * columns + c] = in[c];
    }
  });
}

}  // namespace

Tensor segment_reduce(const Tensor& x, SegmentReduction reduction, const Tensor& offsets) {
  check(x.rank() == 2 && x.dtype() == DType::f32, "segment_reduce() needs rows [N, D] f32, not {} {}", x.shape(),
        name_of(x.dtype()));
  check(offsets.rank() == 1 && offsets.dtype() == DType::i64 && offsets.size(0) >= 2,
        "segment_reduce() needs offsets [S + 1] i64, not {} {}", offsets.shape(), name_of(offsets.dtype()));
  const Tensor at = offsets.contiguous().detach();
  const std::span<const std::int64_t> places = at.span<std::int64_t>();
  check(places.front() == 0 && places.back() == x.size(0),
        "segment_reduce(): the offsets of {} rows go from 0 to {}, not from {} to {}", x.size(0), x.size(0),
        places.front(), places.back());
  for (std::size_t s = 0; s + 1 < places.size(); ++s) {
    check(places[s] < places[s + 1], "segment_reduce(): the segment {} has no rows", s);
  }
  const Tensor dense = x.contiguous().detach();
  Tensor y = Tensor::empty({std::ssize(places) - 1, x.size(1)});
  reduce_segments(reduction, dense.data<float>(), places, x.size(1), y.data<float>());
  const bool compares = reduction == SegmentReduction::max;
  return autograd::record("segment_reduce", y, {&x},
                          [reduction, at, dx = autograd::Gradient(x), dense = compares ? dense : Tensor(),
                           y = compares ? y.detach() : Tensor()](const Tensor& dy) {
                            const Tensor rows = dy.contiguous();
                            const Tensor gradient = Tensor::empty(dx.shape());
                            reduce_segments_gradient(reduction, dense.defined() ? dense.data<float>() : nullptr,
                                                     y.defined() ? y.data<float>() : nullptr, rows.data<float>(),
                                                     at.span<std::int64_t>(), rows.size(1), gradient.data<float>());
                            dx.add(gradient);
                          });
}

}  // namespace vitrail::ops
