#include "vitrail/ops/images/windows.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/windows.h"

namespace vitrail::ops {
namespace {

using kernels::WindowLayout;

WindowLayout layout_of(const Shape& grid, const Windows& windows) {
  check(windows.size[0] > 0 && windows.size[1] > 0, "a window of {}x{} holds nothing", windows.size[0],
        windows.size[1]);
  WindowLayout layout{grid[0],          grid[1], grid[2], grid[3], windows.size, windows.shift, windows.by_columns,
                      windows.pad_first};
  for (const auto& [shift, side] :
       {std::pair(&layout.shift[0], layout.rolled_height()), std::pair(&layout.shift[1], layout.rolled_width())}) {
    *shift = side > 0 ? (*shift % side + side) % side : 0;
  }
  return layout;
}

Tensor cut(const Tensor& x, const WindowLayout& layout) {
  const Tensor grid = x.contiguous();
  Tensor y = Tensor::empty(
      {layout.batch * layout.rows() * layout.columns(), layout.size[0] * layout.size[1], layout.channels}, x.dtype());
  kernels::window_partition(layout, grid.raw(), y.raw(), x.dtype());
  return y;
}

Tensor join(const Tensor& x, const WindowLayout& layout, const Tensor& residual) {
  const Tensor windows = x.contiguous();
  const Tensor other = residual.defined() ? residual.contiguous() : Tensor();
  Tensor y = Tensor::empty({layout.batch, layout.height, layout.width, layout.channels}, x.dtype());
  kernels::window_reverse(layout, windows.raw(), other.defined() ? other.raw() : nullptr, y.raw(), x.dtype());
  return y;
}

}  // namespace

Tensor window_partition(const Tensor& x, const Windows& windows) {
  check(x.rank() == 4 && is_floating(x.dtype()), "windows are cut from grids [B, H, W, C] of f32 or bf16, not {} {}",
        x.shape(), name_of(x.dtype()));
  const WindowLayout layout = layout_of(x.shape(), windows);
  return autograd::record("window_partition", cut(x, layout), {&x},
                          [layout, dx = autograd::Gradient(x)](const Tensor& dy) { dx.add(join(dy, layout, {})); });
}

Tensor window_reverse(const Tensor& x, const Windows& windows, const std::array<std::int64_t, 2>& grid,
                      const Tensor& residual) {
  const std::int64_t count = windows.count(grid);
  check(x.rank() == 3 && is_floating(x.dtype()) && count > 0 && x.size(0) % count == 0 && x.size(1) == windows.area(),
        "a grid of {}x{} has {} windows of {} tokens, [B · {}, {}, C] of f32 or bf16, not {} {}", grid[0], grid[1],
        count, windows.area(), count, windows.area(), x.shape(), name_of(x.dtype()));
  const Shape shape{x.size(0) / count, grid[0], grid[1], x.size(2)};
  check(!residual.defined() || (residual.shape() == shape && residual.dtype() == x.dtype()),
        "the residual of windows must be {} {}, not {} {}", shape, name_of(x.dtype()),
        residual.defined() ? residual.shape() : Shape{}, residual.defined() ? name_of(residual.dtype()) : "");
  const WindowLayout layout = layout_of(shape, windows);
  return autograd::record(
      "window_reverse", join(x, layout, residual), {&x, &residual},
      [layout, dx = autograd::Gradient(x), dresidual = autograd::Gradient(residual)](const Tensor& dy) {
        if (dx.wanted()) {
          dx.add(cut(dy, layout));
        }
        dresidual.add(dy);
      });
}

}  // namespace vitrail::ops
