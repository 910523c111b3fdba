/// \file
/// Separable resampling of feature maps.
#pragma once

#include <cstdint>
#include <vector>

namespace vitrail::kernels {

/// How one axis is resampled: output i is Σ weights[i taps + t] · input[indices[i taps + t]] over t < taps.
struct Resampling {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t taps = 0;
  std::vector<std::int64_t> indices;  ///< all in 0 … in - 1
  std::vector<float> weights;
};

enum class Filter : std::uint8_t { nearest, linear, cubic };

/// The resampling of torch.nn.functional.interpolate from `in` to `out` elements. `scale` is torch's scale_factor where
/// that is not out / in; it has a meaning for the filters linear and cubic without antialias and align_corners alone.
Resampling resampling(std::int64_t in, std::int64_t out, Filter filter, bool antialias, bool align_corners,
                      double scale = 0);

/// Resamples x [planes, rows.in, columns.in] to y [planes, rows.out, columns.out].
void resample(const Resampling& rows, const Resampling& columns, std::int64_t planes, const float* x, float* y);
/// The adjoint of resample(): dx [planes, rows.in, columns.in], which is overwritten, from dy [planes, rows.out,
/// columns.out].
void resample_backward(const Resampling& rows, const Resampling& columns, std::int64_t planes, const float* dy,
                       float* dx);

}  // namespace vitrail::kernels
