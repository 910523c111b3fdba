// Grids of tokens cut into windows, and put together again, in one pass over memory.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// A grid [batch, height, width, channels], rolled up and left by `shift`, filled up at the bottom and the right to
// whole windows of `size`, and cut: [batch · rows · columns, size₀ · size₁, channels].
struct WindowLayout {
  std::int64_t batch, height, width, channels;
  std::array<std::int64_t, 2> size;
  std::array<std::int64_t, 2> shift;  // each at least 0, and below the grid's side
  bool by_columns;                    // the tokens of a window, column by column instead of row by row

  std::int64_t rows() const { return (height + size[0] - 1) / size[0]; }
  std::int64_t columns() const { return (width + size[1] - 1) / size[1]; }
};

// Dense elements of f32 or bf16 on both sides. What was filled up is zeros.
void window_partition(const WindowLayout& layout, const void* grid, void* windows, DType dtype);
// The grid of the windows, without what was filled up; plus `residual`, a grid too, unless that is null.
void window_reverse(const WindowLayout& layout, const void* windows, const void* residual, void* grid, DType dtype);

}  // namespace vitrail::kernels
