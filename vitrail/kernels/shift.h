// Channels moved over a picture.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// The channels begin, begin + step, … below end come from a place that lies `rows` down and `columns` to the right.
struct ChannelShift {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// What stands beyond the picture.
enum class Border {
  zeros,
  edge  // the nearest value inside
};

// y[b, i, j, c] = x[b, i + rows, j + columns, c] with the shift that c belongs to; every channel belongs to one.
//   x and y [B, H, W, C], contiguous, f32 or bf16.
void shift_channels(const Tensor& x, std::span<const ChannelShift> shifts, Border border, const Tensor& y);

// The adjoint: dx[b, i, j, c] = the sum of dy where shift_channels() reads x[b, i, j, c].
void shift_channels_gradient(const Tensor& dy, std::span<const ChannelShift> shifts, Border border, const Tensor& dx);

}  // namespace vitrail::kernels
