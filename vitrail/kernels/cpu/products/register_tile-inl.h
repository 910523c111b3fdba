/// \file
/// The f32 micro-kernel: a small product of matrices whose sums stay in registers, compiled once per instruction set.
/// Attention, products with packed weights and gradients of convolutions are built of it.

#if defined(VITRAIL_KERNELS_REGISTER_TILE_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_REGISTER_TILE_TARGET
#undef VITRAIL_KERNELS_REGISTER_TILE_TARGET
#else
#define VITRAIL_KERNELS_REGISTER_TILE_TARGET
#endif

#include "vitrail/kernels/cpu/products/tile_products.h"
#include "vitrail/kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The width in vectors of the largest tile of tile_rows rows whose sums, together with one row of B, fit into the
// registers, of which there are 32 or 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int most_tile_vectors = 4;
#else
constexpr int most_tile_vectors = 2;
#endif

// A tile C of kRows rows of kVectors vectors, in registers. `part` is how much of the last vector is used: Whole, or a
// number of lanes.
template <int kRows, int kVectors>
struct RegisterTile {
  static constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));

  // Calls body(sum, row, column, part) for each vector of the tile.
  template <class Part, class Body>
  HWY_INLINE void each(Part part, Body&& body) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (int v = 0; v + 1 < kVectors; ++v) {
        body(sums[r][v], r, v * lanes, Whole{});
      }
      body(sums[r][kVectors - 1], r, (kVectors - 1) * lanes, part);
    }
  }

  HWY_INLINE void zero() {
    each(Whole{}, [](V<F32>& sum, int, std::int64_t, Whole) HWY_ATTR { sum = hn::Zero(F32()); });
  }
  template <class Part>
  HWY_INLINE void load(const float* c, std::int64_t c_row, Part part) {
    each(part, [&](V<F32>& sum, int r, std::int64_t column, auto some)
                   HWY_ATTR { sum = HWY_NAMESPACE::load(F32(), c + r * c_row + column, some); });
  }
  template <class Part>
  HWY_INLINE void store(float* c, std::int64_t c_row, Part part) {
    each(part, [&](V<F32>& sum, int r, std::int64_t column, auto some)
                   HWY_ATTR { HWY_NAMESPACE::store(sum, F32(), c + r * c_row + column, some); });
  }

  // C += A B: element (r, p) of A is a[r a_row + p a_depth], row p of B begins at b + p b_depth.
  template <class Part>
  HWY_INLINE void add_product(std::int64_t depth, const float* a, std::int64_t a_row, std::int64_t a_depth,
                              const float* b, std::int64_t b_depth, Part part) {
    const F32 d;
    for (std::int64_t p = 0; p < depth; ++p, a += a_depth, b += b_depth) {
      V<F32> columns[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v + 1 < kVectors; ++v) {
        columns[v] = HWY_NAMESPACE::load(d, b + v * lanes);
      }
      columns[kVectors - 1] = HWY_NAMESPACE::load(d, b + (kVectors - 1) * lanes, part);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        const auto left = hn::Set(d, a[r * a_row]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = hn::MulAdd(left, columns[v], sums[r][v]);
        }
      }
    }
  }

  V<F32> sums[kRows][kVectors];
};

// Calls `body.operator()<rows>(row)` for tiles of 6, 4, 2 or 1 rows that cover the rows [row, end).
template <int kRows = tile_rows, class Body>
HWY_INLINE void for_tile_rows(std::int64_t row, std::int64_t end, Body&& body) {
  for (; row + kRows <= end; row += kRows) {
    body.template operator()<kRows>(row);
  }
  if constexpr (kRows > 1) {
    for_tile_rows<kRows == tile_rows ? 4 : kRows / 2>(row, end, body);
  }
}

// Calls `body.operator()<vectors>(column, part)` for tiles of 4, 2 or 1 vectors that cover the columns [column, end).
template <int kVectors = most_tile_vectors, class Body>
HWY_INLINE void for_tile_columns(std::int64_t column, std::int64_t end, Body&& body) {
  constexpr std::int64_t width = kVectors * static_cast<std::int64_t>(hn::MaxLanes(F32()));
  for (; column + width <= end; column += width) {
    body.template operator()<kVectors>(column, Whole{});
  }
  if constexpr (kVectors > 1) {
    for_tile_columns<kVectors / 2>(column, end, body);
  } else if (column < end) {
    body.template operator()<1>(column, end - column);
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
