#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/added_product.cpp"
#include "vitrail/kernels/added_product.h"

#include <algorithm>
#include <limits>

#include <hwy/cache_control.h>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
// This comes after simd.h, which sets Highway up.
#include "vitrail/kernels/cpu/products/register_tile-inl.h"

#ifndef VITRAIL_KERNELS_ADDED_PRODUCT_ONCE
#define VITRAIL_KERNELS_ADDED_PRODUCT_ONCE
namespace vitrail::kernels {

constexpr std::int64_t block_columns = 64;

struct RowsAndColumns {
  std::int64_t row, row_end;
  std::int64_t column, column_end;  // a multiple of 64, or the last column
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <int kRows, int kVectors, class Part>
HWY_INLINE void add_tile(const AddedProduct& m, std::int64_t row, std::int64_t column, const float* weight, Part part) {
  const F32 d;
  using Tile = RegisterTile<kRows, kVectors>;
  constexpr std::int64_t line = 16;
  float* const c = m.c + row * m.columns + column;
  for (int r = 0; r < kRows; ++r) {
    for (std::int64_t i = 0; i < kVectors * Tile::lanes; i += line) {
      hwy::Prefetch(c + r * m.columns + i);
    }
  }
  Tile tile;
  tile.each(part, [&](V<F32>& sum, int, std::int64_t i, auto some)
                      HWY_ATTR { sum = m.bias == nullptr ? hn::Zero(d) : load(d, m.bias + column + i, some); });
  tile.add_product(m.depth, m.a + row * m.depth, m.depth, 1, weight, block_columns, Whole{});
  const auto floor = hn::Set(d, m.relu ? 0.0F : -std::numeric_limits<float>::infinity());
  tile.each(part, [&](V<F32>& sum, int r, std::int64_t i, auto some) HWY_ATTR {
    const auto y = hn::Add(sum, load(d, c + r * m.columns + i, some));
    sum = hn::IfThenElse(hn::Lt(y, floor), floor, y);  // NaN stays NaN
  });
  tile.store(c, m.columns, part);
}

// Multiplies blocks of rows of `a` that fit into the L2 cache by all columns, one block of the weight after the other.
void add_part(const AddedProduct& m, const RowsAndColumns& part) {
  constexpr std::int64_t floats_at_once = 96 * 1024;
  const std::int64_t block_depth = (m.depth + 15) / 16 * 16;
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, floats_at_once / m.depth / tile_rows) * tile_rows;
  for (std::int64_t row = part.row; row < part.row_end; row += rows_at_once) {
    const std::int64_t row_end = std::min(part.row_end, row + rows_at_once);
    for (std::int64_t block = part.column; block < part.column_end; block += block_columns) {
      const float* const weight = m.weight + block * block_depth;
      const std::int64_t end = std::min(part.column_end, block + block_columns);
      for_tile_columns(block, end, [&]<int kVectors>(std::int64_t column, auto some) HWY_ATTR {
        for_tile_rows(row, row_end, [&]<int kRows>(std::int64_t i) HWY_ATTR {
          add_tile<kRows, kVectors>(m, i, column, weight + column - block, some);
        });
      });
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(add_part);

void add_product(const AddedProduct& product) {
  // Threads share the rows, or the blocks of columns if there are few rows.
  constexpr std::int64_t tile = tile_rows;
  const std::int64_t blocks = (product.columns + block_columns - 1) / block_columns;
  const std::int64_t tiles = (product.rows + tile - 1) / tile;
  const std::int64_t work = product.rows * product.columns * product.depth;
  const std::int64_t threads = threads_for(work, 1 << 18);
  const bool by_columns = tiles < 16 * threads && blocks >= threads;
  const std::int64_t pieces = by_columns ? blocks : tiles;
  parallel_for(pieces, pieces / threads, [&](std::int64_t begin, std::int64_t end, int) {
    const RowsAndColumns part =
        by_columns
            ? RowsAndColumns{0, product.rows, begin * block_columns, std::min(product.columns, end * block_columns)}
            : RowsAndColumns{begin * tile, std::min(product.rows, end * tile), 0, product.columns};
    HWY_DYNAMIC_DISPATCH(add_part)(product, part);
  });
}

}  // namespace vitrail::kernels
#endif
