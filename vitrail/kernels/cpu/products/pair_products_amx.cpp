// Products of pairs (see tile_products.h) on AMX's tile registers, which hold 16 rows of 16 words: one instruction adds
// to 16 x 16 sums the products of 32 bf16 of each row and column.
#include "vitrail/kernels/cpu/products/tile_products.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

namespace vitrail::kernels {

#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr std::int64_t side = 16;
constexpr int panel_tiles = 4;  // tiles side by side in a panel of B, whose products share one tile of A

// The operand of LDTILECFG (Intel's manual, volume 1, 18.3): the shapes of the tile registers. Tiles 0 to 3 hold sums,
// 4 a tile of A and 5 one of B; 6 and 7 hold those of A and B for the last `rest` words of the depth.
struct alignas(64) TileShapes {
  explicit TileShapes(std::int64_t rest) {
    std::fill_n(row_bytes, 6, 4 * side);
    std::fill_n(rows, 6, side);
    if (rest > 0) {
      row_bytes[6] = static_cast<std::uint16_t>(4 * rest);
      rows[6] = side;
      row_bytes[7] = 4 * side;
      rows[7] = static_cast<std::uint8_t>(rest);
    }
  }
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

// The tile instructions, in place of intrinsics: those of GCC 12 are macros that accept only a literal for the tile,
// and do not declare that they read memory.

void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
void release() { asm volatile("tilerelease"); }
template <int kTile>
void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// Loads a tile from rows of words that begin `row` words after each other.
template <int kTile>
void load(const void* from, std::int64_t row) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(4 * row), "i"(kTile) : "memory");
}
template <int kTile>
void store(void* to, std::int64_t row) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(4 * row), "i"(kTile) : "memory");
}
template <int kSum, int kA, int kB>
void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

// Calls `f.operator()<kTile>()` for each kTile.
template <class Function, int... kTile>
void for_each_tile(std::integer_sequence<int, kTile...>, Function f) {
  (f.template operator()<kTile>(), ...);
}

#define VITRAIL_AVX512 __attribute__((target("avx512f")))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12's headers

// Transposes 16 x 16 words.
VITRAIL_AVX512 void transpose(const __m512i (&in)[side], Pair* out) {
  __m512i pairs[side];  // words of two rows each, interleaved
  __m512i fours[side];  // quarter q of fours[4 g + c] is column 4 q + c of rows 4 g … 4 g + 3
  for (int i = 0; i < side; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(in[i], in[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(in[i], in[i + 1]);
  }
  for (int i = 0; i < side; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  constexpr int even = 0x88;  // quarters 0 and 2 of both operands
  constexpr int odd = 0xdd;   // quarters 1 and 3
  for (int c = 0; c < 4; ++c) {
    const __m512i even_above = _mm512_shuffle_i32x4(fours[c], fours[4 + c], even);
    const __m512i even_below = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], even);
    const __m512i odd_above = _mm512_shuffle_i32x4(fours[c], fours[4 + c], odd);
    const __m512i odd_below = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], odd);
    _mm512_store_si512(out + c * side, _mm512_shuffle_i32x4(even_above, even_below, even));
    _mm512_store_si512(out + (4 + c) * side, _mm512_shuffle_i32x4(odd_above, odd_below, even));
    _mm512_store_si512(out + (8 + c) * side, _mm512_shuffle_i32x4(even_above, even_below, odd));
    _mm512_store_si512(out + (12 + c) * side, _mm512_shuffle_i32x4(odd_above, odd_below, odd));
  }
}

// Copies the words (i, p) of A, for i < rows and p < depth (both at most 16), to block[16 i + p]. One of the strides of
// A is 1.
VITRAIL_AVX512 void pack(const Pair* a, std::int64_t a_row, std::int64_t a_depth, std::int64_t rows, std::int64_t depth,
                         Pair* block) {
  const auto first = [](std::int64_t count) { return static_cast<__mmask16>((1U << count) - 1); };
  if (a_depth == 1) {
    for (std::int64_t i = 0; i < rows; ++i) {
      _mm512_store_si512(block + i * side, _mm512_maskz_loadu_epi32(first(depth), a + i * a_row));
    }
    return;
  }
  __m512i down[side];
  for (std::int64_t p = 0; p < side; ++p) {
    down[p] = _mm512_maskz_loadu_epi32(p < depth ? first(rows) : first(0), a + p * a_depth);
  }
  transpose(down, block);
}

#pragma GCC diagnostic pop

void copy_rows(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t to_row) {
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * from_row, columns, to + i * to_row);
  }
}

// Multiplies all rows of A by one panel of B, which is kWidth tiles wide.
template <int kWidth>
void multiply_panel(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row, std::int64_t a_depth,
                    const Pair* b, float* c, std::int64_t c_row, bool add) {
  constexpr std::make_integer_sequence<int, kWidth> tiles;
  constexpr std::int64_t width = kWidth * side;
  alignas(64) Pair block[side * side];
  alignas(64) float edge[side * width];  // the sums of the last rows, if they do not fill a tile
  for (std::int64_t i = 0; i < rows; i += side) {
    const std::int64_t height = std::min(side, rows - i);
    const bool whole = height == side;
    float* const result = c + i * c_row;
    float* const sums = whole ? result : edge;
    const std::int64_t sums_row = whole ? c_row : width;
    if (add) {
      if (!whole) {
        copy_rows(result, c_row, height, width, edge, width);
      }
      for_each_tile(tiles, [&]<int t>() { load<t>(sums + t * side, sums_row); });
    } else {
      for_each_tile(tiles, [&]<int t>() { zero<t>(); });
    }
    for (std::int64_t p = 0; p < depth; p += side) {
      const std::int64_t count = std::min(side, depth - p);
      const Pair* tile = a + i * a_row + p * a_depth;
      std::int64_t row = a_row;
      if (!whole || a_depth != 1) {
        pack(tile, a_row, a_depth, height, count, block);
        tile = block;
        row = side;
      }
      const Pair* const below = b + p * width;
      if (count == side) {
        load<4>(tile, row);
        for_each_tile(tiles, [&]<int t>() {
          load<5>(below + t * side, width);
          add_product<t, 4, 5>();
        });
      } else {
        load<6>(tile, row);
        for_each_tile(tiles, [&]<int t>() {
          load<7>(below + t * side, width);
          add_product<t, 6, 7>();
        });
      }
    }
    for_each_tile(tiles, [&]<int t>() { store<t>(sums + t * side, sums_row); });
    if (!whole) {
      copy_rows(edge, width, height, width, result, c_row);
    }
  }
}

}  // namespace

void multiply_pairs_in_tiles(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row,
                             std::int64_t a_depth, const Pair* b, std::int64_t columns, float* c, std::int64_t c_row,
                             bool add) {
  constexpr decltype(&multiply_panel<1>) of_width[panel_tiles] = {&multiply_panel<1>, &multiply_panel<2>,
                                                                  &multiply_panel<3>, &multiply_panel<4>};
  configure(TileShapes(depth % side));
  for (std::int64_t column = 0; column < columns; column += panel_tiles * side) {
    const std::int64_t tiles = std::min<std::int64_t>(panel_tiles, (columns - column) / side);
    of_width[tiles - 1](rows, depth, a, a_row, a_depth, b + column * depth, c + column, c_row, add);
  }
  release();
}

#else

void multiply_pairs_in_tiles(std::int64_t, std::int64_t, const Pair*, std::int64_t, std::int64_t, const Pair*,
                             std::int64_t, float*, std::int64_t, bool) {}

#endif

}  // namespace vitrail::kernels
