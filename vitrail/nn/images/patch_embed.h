/// \file
/// From images to tokens.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Patch embedding (Dosovitskiy et al. 2021, eq. 1): a token for each patch, x [B, C, H, W] → [B, rows · columns, D],
/// row by row. It is the linear map y = W patch + b of the flattened patch, which equals a convolution with stride =
/// kernel = patch. Parameters `proj.weight` [D, C, p₀, p₁] and, with `bias`, `proj.bias` [D], as in timm's PatchEmbed.
struct PatchEmbed {
  PatchEmbed(const Scope& scope, const Size2& patch, std::int64_t channels, std::int64_t dim, bool bias = true);
  /// Cuts the patches and multiplies them by one matrix product. That is as fast as the convolution in the forward
  /// pass, and 1.2 to 5 times as fast with the backward pass.
  Tensor operator()(const Tensor& x) const;
  /// The tokens of patches that ops::extract_patches() has cut already: [..., C p₀ p₁] → [..., D].
  Tensor embed(const Tensor& patches) const;
  /// The tokens by the convolution.
  Tensor by_convolution(const Tensor& x) const;

  Size2 grid(std::int64_t height, std::int64_t width) const { return {height / patch[0], width / patch[1]}; }
  std::int64_t flops(const Size2& grid) const { return proj.flops(grid[0], grid[1]); }

  Size2 patch;
  Conv2d proj;
};

}  // namespace vitrail::nn
