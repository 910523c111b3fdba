// Resizing of feature maps.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

enum class Interpolation { nearest, bilinear, bicubic };

// torch.nn.functional.interpolate of x [B, C, H, W] (f32; bf16 by way of f32) to [B, C, height, width]. bicubic is
// Keys' kernel with a = -0.75, or -0.5 when antialiased, as PyTorch's and Pillow's; antialias widens the kernel when
// shrinking; align_corners as PyTorch's. nearest has neither.
Tensor interpolate(const Tensor& x, std::int64_t height, std::int64_t width, Interpolation mode, bool antialias = false,
                   bool align_corners = false);

}  // namespace vitrail::ops
