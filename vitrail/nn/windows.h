// What transformers whose attention stays within shifted windows share (Swin: Liu et al. 2021).
#pragma once

#include <cstdint>

#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/windows.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// The windows of a block on a grid, timm's _calc_window_shift: of the size `wanted`, and shifted by half of that if
// `shifted`. Along a side of the grid that is no longer than a window, the window is cut to that side and stays where
// it is, unless `always_partition`.
ops::Windows fit_windows(const Size2& grid, const Size2& wanted, bool shifted, bool always_partition);

// What keeps tokens that shifting brought together from seeing each other: [W, 1, n, n] f32, added to the scores, 0
// between tokens that were neighbours before, -100 between others; undefined if the windows are not shifted.
Tensor shift_mask(const Size2& grid, const ops::Windows& windows);

// Where the queries and keys of such windows lie.
inline AttentionPlace place_of(const Size2& grid, const ops::Windows& windows) {
  return {.prefix = 0,
          .queries = grid,
          .keys = grid,
          .window = windows.size,
          .shift = {windows.shift[0] % grid[0], windows.shift[1] % grid[1]}};  // a small grid may roll more than once
}

// Every 2 × 2 tokens of x [B, H, W, C], joined, to one: reduction(norm([…])) or, with the norm behind (Swin V2: Liu et
// al. 2022), norm(reduction([…])): [B, ⌈H / 2⌉, ⌈W / 2⌉, out]. Parameters `norm`, and `reduction` [out, 4 C].
struct PatchMerging {
  PatchMerging(const Scope& scope, std::int64_t dim, std::int64_t out, const NormConfig& norm,
               bool norm_behind = false);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops(std::int64_t tokens) const;  // of `tokens` that come out

  bool norm_behind;
  Linear reduction;
  Norm norm;
};

}  // namespace vitrail::nn
