/// \file
/// Parts of transformers whose attention stays within shifted windows (Swin: Liu et al. 2021).
#pragma once

#include <cstdint>
#include <memory>

#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/ops/images/windows.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The windows of a block on a grid (timm's `_calc_window_shift`): of the size `wanted`, and shifted by half of that if
/// `shifted`. Along a side of the grid that is no longer than the window, the window is cut to that side and not
/// shifted, unless `always_partition`.
ops::Windows fit_windows(const Size2& grid, const Size2& wanted, bool shifted, bool always_partition);

/// The mask that keeps tokens which shifting brought together from attending to each other: [W, 1, n, n] f32 for W
/// windows of n tokens, which is added to the scores. It is 0 between tokens that were neighbours before and -100
/// between others; undefined if the windows are not shifted.
Tensor shift_mask(const Size2& grid, const ops::Windows& windows);

/// Where the queries and keys of attention in `windows` lie, for a Recorder.
std::shared_ptr<const TokenGrid> grid_of(const Size2& grid, const ops::Windows& windows);

/// Patch merging: joins every 2 × 2 tokens of x [B, H, W, C] and maps them to one, [B, ⌈H / 2⌉, ⌈W / 2⌉, out], by
/// reduction(norm(joined)) or, with `norm_behind` (Swin V2: Liu et al. 2022), by norm(reduction(joined)). Parameters
/// `norm`, and `reduction` [out, 4 C].
struct PatchMerging {
  PatchMerging(const Scope& scope, std::int64_t dim, std::int64_t out, const NormConfig& norm,
               bool norm_behind = false);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops(std::int64_t tokens) const;  ///< for that many output tokens

  bool norm_behind;
  Linear reduction;
  Norm norm;
};

}  // namespace vitrail::nn
