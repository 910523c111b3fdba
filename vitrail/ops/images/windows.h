/// \file
/// Grids of tokens partitioned into windows, for attention within each of them.
#pragma once

#include <array>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// How a grid is partitioned into windows (Swin: Liu et al. 2021, section 3.2): it is rolled up and left by `shift`,
/// padded with zeros at the bottom and the right to whole windows of `size`, and cut, row by row. With `pad_first` it
/// is padded before it is rolled, so that the padding is rolled too.
struct Windows {
  std::array<std::int64_t, 2> size = {1, 1};
  std::array<std::int64_t, 2> shift = {0, 0};
  bool by_columns = false;  ///< whether the tokens of a window are ordered column by column instead of row by row
  bool pad_first = false;   ///< whether the grid is padded before it is rolled, instead of after

  std::int64_t area() const { return size[0] * size[1]; }
  std::int64_t rows(std::int64_t height) const { return (height + size[0] - 1) / size[0]; }
  std::int64_t columns(std::int64_t width) const { return (width + size[1] - 1) / size[1]; }
  /// The number of windows on a grid.
  std::int64_t count(const std::array<std::int64_t, 2>& grid) const { return rows(grid[0]) * columns(grid[1]); }
};

/// Partitions x [B, H, W, C], f32 or bf16, into [B · windows, size₀ · size₁, C], the windows of a sample one after the
/// other.
Tensor window_partition(const Tensor& x, const Windows& windows);
/// The inverse of window_partition(): puts the windows x [B · windows, size₀ · size₁, C] of a grid H × W together to
/// [B, H, W, C], without the padding, and adds `residual` [B, H, W, C] of the same dtype, if defined, in the same pass
/// over memory.
Tensor window_reverse(const Tensor& x, const Windows& windows, const std::array<std::int64_t, 2>& grid,
                      const Tensor& residual = {});

}  // namespace vitrail::ops
