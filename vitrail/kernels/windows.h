/// \file
/// The partition of grids of tokens into windows, and its inverse, each in one pass over memory.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// How a grid [batch, height, width, channels] is partitioned: it is rolled up and left by `shift`, padded at the
/// bottom and the right to whole windows of `size`, and cut into [batch · rows · columns, size₀ · size₁, channels].
/// With `pad_first` it is padded before it is rolled.
struct WindowLayout {
  std::int64_t batch, height, width, channels;
  std::array<std::int64_t, 2> size;
  std::array<std::int64_t, 2> shift;  ///< each at least 0 and less than rolled_height() or rolled_width()
  bool by_columns;  ///< whether the tokens of a window are ordered column by column instead of row by row
  bool pad_first;   ///< whether the grid is padded before it is rolled, instead of after

  std::int64_t rows() const { return (height + size[0] - 1) / size[0]; }
  std::int64_t columns() const { return (width + size[1] - 1) / size[1]; }
  /// The size of what is rolled.
  std::int64_t rolled_height() const { return pad_first ? rows() * size[0] : height; }
  std::int64_t rolled_width() const { return pad_first ? columns() * size[1] : width; }
};

/// Partitions `grid` into `windows`, both dense, f32 or bf16. The padding is filled with zeros.
void window_partition(const WindowLayout& layout, const void* grid, void* windows, DType dtype);
/// The inverse of window_partition(): puts `windows` together to `grid`, without the padding, and adds `residual`, of
/// the grid's shape, unless that is null.
void window_reverse(const WindowLayout& layout, const void* windows, const void* residual, void* grid, DType dtype);

}  // namespace vitrail::kernels
