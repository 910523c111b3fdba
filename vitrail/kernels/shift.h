/// \file
/// Spatial shifts of the channels of an image.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// A shift of the channels begin, begin + step, … below end: each pixel of the result reads them from the pixel that
/// lies `rows` below it and `columns` to its right.
struct ChannelShift {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// What is read beyond the border of the image.
enum class Border {
  zeros,
  edge  ///< the nearest pixel inside
};

/// y[b, i, j, c] = x[b, i + rows, j + columns, c] with the shift of channel c; every channel belongs to exactly one. x
/// and y [B, H, W, C], contiguous, f32 or bf16 (else Error).
void shift_channels(const Tensor& x, std::span<const ChannelShift> shifts, Border border, const Tensor& y);

/// The adjoint of shift_channels(): dx[b, i, j, c] = the sum of dy wherever shift_channels() reads x[b, i, j, c].
void shift_channels_gradient(const Tensor& dy, std::span<const ChannelShift> shifts, Border border, const Tensor& dx);

}  // namespace vitrail::kernels
