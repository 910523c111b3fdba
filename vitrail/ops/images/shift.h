/// \file
/// Spatial shifts of channels, without arithmetic.
#pragma once

#include <vector>

#include "vitrail/kernels/shift.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using kernels::Border;        // zeros, edge
using kernels::ChannelShift;  // begin, end, step, rows, columns

/// y[b, i, j, c] = x[b, i + rows, j + columns, c], with the one of `shifts` to which channel c belongs; beyond the
/// border of the image, zeros or the nearest pixel inside. x [B, H, W, C], f32 or bf16 → [B, H, W, C]. Error unless
/// each channel belongs to exactly one shift.
Tensor shift_channels(const Tensor& x, const std::vector<ChannelShift>& shifts, Border border);

}  // namespace vitrail::ops
