// Pictures to tokens.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/nn/conv.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// A token for each patch (Dosovitskiy et al. 2021, eq. 1): x [B, C, H, W] → [B, rows · columns, D], the patches row by
// row. It is the linear map of the flattened patch, y = W patch + b, which equals the convolution with stride = kernel
// = patch. Parameters `proj.weight` [D, C, p₀, p₁] and, with `bias`, `proj.bias` [D], as timm's PatchEmbed has them.
struct PatchEmbed {
  PatchEmbed(const Scope& scope, const Size2& patch, std::int64_t channels, std::int64_t dim, bool bias = true);
  // By cut patches and one matrix product: as fast as the convolution forward, and with backward 1.2 to 5 times as
  // fast.
  Tensor operator()(const Tensor& x) const;
  // The tokens of patches that have been cut already: [..., C p₀ p₁] (ops::extract_patches) → [..., D].
  Tensor embed(const Tensor& patches) const;
  // By the convolution.
  Tensor by_convolution(const Tensor& x) const;

  Size2 grid(std::int64_t height, std::int64_t width) const { return {height / patch[0], width / patch[1]}; }
  std::int64_t flops(const Size2& grid) const { return proj.flops(grid[0], grid[1]); }

  Size2 patch;
  Conv2d proj;
};

}  // namespace vitrail::nn
