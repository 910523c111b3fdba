/// \file
/// Resizing of feature maps.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

enum class Interpolation { nearest, bilinear, bicubic };

/// torch.nn.functional.interpolate of x `[B, C, H, W]` (f32, or bf16 computed in f32) to [B, C, height, width]. bicubic
/// is Keys' kernel with a = -0.75, or -0.5 with antialias, as PyTorch and Pillow have it; antialias widens the kernel
/// when shrinking; align_corners is PyTorch's. nearest takes neither of the two (Error).
Tensor interpolate(const Tensor& x, std::int64_t height, std::int64_t width, Interpolation mode, bool antialias = false,
                   bool align_corners = false);
/// interpolate() by PyTorch's scale_factor, bicubic: to [B, C, ⌊H rows⌋, ⌊W columns⌋], whose elements lie 1 / rows and
/// 1 / columns elements of x apart, however many there are of them.
Tensor interpolate_by(const Tensor& x, double rows, double columns);

}  // namespace vitrail::ops
