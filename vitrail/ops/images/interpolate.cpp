#include "vitrail/ops/images/interpolate.h"

#include <cmath>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/interpolate.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::ops {
namespace {

kernels::Filter filter_of(Interpolation mode) {
  switch (mode) {
    case Interpolation::nearest:
      return kernels::Filter::nearest;
    case Interpolation::bilinear:
      return kernels::Filter::linear;
    case Interpolation::bicubic:
      return kernels::Filter::cubic;
  }
  fail("no such interpolation: {}", static_cast<int>(mode));
}

// x [B, C, H, W] f32 with both axes resampled.
Tensor resampled(const Tensor& x, kernels::Resampling rows, kernels::Resampling columns) {
  const Tensor dense = x.contiguous();
  Tensor result = Tensor::empty({x.size(0), x.size(1), rows.out, columns.out});
  const std::int64_t planes = x.size(0) * x.size(1);
  kernels::resample(rows, columns, planes, dense.data<float>(), result.data<float>());
  return autograd::record(
      "interpolate", std::move(result), {&x},
      [dx = autograd::Gradient(x), rows = std::move(rows), columns = std::move(columns), planes](const Tensor& dy) {
        Tensor gradient = Tensor::empty(dx.shape());
        kernels::resample_backward(rows, columns, planes, dy.data<float>(), gradient.data<float>());
        dx.add(std::move(gradient));
      });
}

}  // namespace

Tensor interpolate(const Tensor& x, std::int64_t height, std::int64_t width, Interpolation mode, bool antialias,
                   bool align_corners) {
  check(x.rank() == 4 && x.size(2) > 0 && x.size(3) > 0 && height > 0 && width > 0,
        "interpolate() needs images [B, C, H, W] and a size that are not empty, not {} to {} x {}", x.shape(), height,
        width);
  check(mode != Interpolation::nearest || (!antialias && !align_corners),
        "interpolate() has neither antialias nor align_corners with nearest");
  if (x.dtype() == DType::bf16) {
    return cast(interpolate(cast(x, DType::f32), height, width, mode, antialias, align_corners), DType::bf16);
  }
  return resampled(x, kernels::resampling(x.size(2), height, filter_of(mode), antialias, align_corners),
                   kernels::resampling(x.size(3), width, filter_of(mode), antialias, align_corners));
}

Tensor interpolate_by(const Tensor& x, double rows, double columns) {
  check(x.rank() == 4, "interpolate_by() needs images [B, C, H, W], not {}", x.shape());
  const auto axis = [](std::int64_t in, double scale) {
    const auto out = static_cast<std::int64_t>(std::floor(static_cast<double>(in) * scale));
    check(in > 0 && out > 0, "interpolate_by() by {} would leave nothing of {} elements", scale, in);
    return kernels::resampling(in, out, kernels::Filter::cubic, false, false, scale);
  };
  return resampled(cast(x, DType::f32), axis(x.size(2), rows), axis(x.size(3), columns));
}

}  // namespace vitrail::ops
