#include "vitrail/nn/images/windows.h"

#include <vector>

#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {

ops::Windows fit_windows(const Size2& grid, const Size2& wanted, bool shifted, bool always_partition) {
  ops::Windows windows;
  for (std::size_t side = 0; side < 2; ++side) {
    const bool whole = grid[side] <= wanted[side] && !always_partition;
    windows.size[side] = whole ? grid[side] : wanted[side];
    windows.shift[side] = shifted && !whole ? wanted[side] / 2 : 0;
  }
  return windows;
}

Tensor shift_mask(const Size2& grid, const ops::Windows& windows) {
  if (windows.shift[0] == 0 && windows.shift[1] == 0) {
    return {};
  }
  // Along a side that is shifted, the padded grid has three regions: all up to the last window, and the two parts of
  // the last window.
  const auto region = [](std::int64_t i, std::int64_t whole, std::int64_t window, std::int64_t shift) {
    return shift == 0 || i < whole - window ? 0 : (i < whole - shift ? 1 : 2);
  };
  const std::int64_t rows = windows.rows(grid[0]);
  const std::int64_t columns = windows.columns(grid[1]);
  const std::int64_t area = windows.area();
  const Tensor mask = Tensor::empty({rows * columns, 1, area, area});
  float* out = mask.data<float>();
  std::vector<int> regions(static_cast<std::size_t>(area));
  for (std::int64_t window = 0; window < rows * columns; ++window) {
    for (std::int64_t i = 0; i < area; ++i) {
      const std::int64_t y = window / columns * windows.size[0] + i / windows.size[1];
      const std::int64_t x = window % columns * windows.size[1] + i % windows.size[1];
      regions[static_cast<std::size_t>(i)] = 3 * region(y, rows * windows.size[0], windows.size[0], windows.shift[0]) +
                                             region(x, columns * windows.size[1], windows.size[1], windows.shift[1]);
    }
    for (const int own : regions) {
      for (const int other : regions) {
        *out++ = own == other ? 0.0F : -100.0F;
      }
    }
  }
  return mask;
}

std::shared_ptr<const TokenGrid> grid_of(const Size2& grid, const ops::Windows& windows) {
  TokenGrid tokens;
  tokens.queries = grid;
  tokens.keys = grid;
  tokens.window = windows.size;
  tokens.pad_first = windows.pad_first;
  // A small grid may roll more than once.
  const Size2 rolled = windows.pad_first
                           ? Size2{windows.rows(grid[0]) * windows.size[0], windows.columns(grid[1]) * windows.size[1]}
                           : grid;
  tokens.shift = {windows.shift[0] % rolled[0], windows.shift[1] % rolled[1]};
  return std::make_shared<const TokenGrid>(tokens);
}

PatchMerging::PatchMerging(const Scope& scope, std::int64_t dim, std::int64_t out, const NormConfig& norm_config,
                           bool behind)
    : norm_behind(behind),
      reduction(scope / "reduction", 4 * dim, out, false),
      norm(scope / "norm", behind ? out : 4 * dim, norm_config) {}

Tensor PatchMerging::operator()(const Tensor& x) const {
  const ops::Windows pairs{.size = {2, 2}, .by_columns = true};
  const Shape joined{x.size(0), pairs.rows(x.size(1)), pairs.columns(x.size(2)), 4 * x.size(3)};
  const Tensor y = ops::reshape(ops::window_partition(x, pairs), joined);
  return norm_behind ? norm(reduction(y)) : reduction(norm(y));
}

std::int64_t PatchMerging::flops(std::int64_t tokens) const { return reduction.flops(tokens) + norm.flops(tokens); }

}  // namespace vitrail::nn
