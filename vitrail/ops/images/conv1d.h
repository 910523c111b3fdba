/// \file
/// Convolution of sequences.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;  ///< zeros on either side
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

/// Cross-correlation as torch.nn.functional.conv1d: x [B, C, L] (f32 or bf16), weight [O, C / groups, K] f32, bias [O]
/// f32 or undefined → [B, O, L'] with L' = (L + 2 p - d (K - 1) - 1) / s + 1. It is a conv2d() of one row, in whose
/// memory, [B, L', O], the result is.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});

}  // namespace vitrail::ops
