// Products of pairs (see tile_products.h) by AVX512-BF16's dot product instruction, which Highway 1.0 cannot express.
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/products/tile_products.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vitrail::kernels {

#if defined(__x86_64__)
namespace {

// The micro-kernel with kRows × kVectors accumulators of 16 lanes.
template <int kRows, int kVectors>
__attribute__((target("avx512f,avx512bf16"))) void tile(std::int64_t depth, const Pair* a, std::int64_t a_row,
                                                        std::int64_t a_depth, const Pair* b, float* c,
                                                        std::int64_t c_row, bool add) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = add ? _mm512_loadu_ps(c + r * c_row + v * 16) : _mm512_setzero_ps();
    }
  }
  for (std::int64_t p = 0; p < depth; ++p, a += a_depth, b += kVectors * 16) {
    __m512i columns[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = _mm512_loadu_si512(b + v * 16);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i word = _mm512_set1_epi32(static_cast<int>(a[r * a_row]));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)word, (__m512bh)columns[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(c + r * c_row + v * 16, sum[r][v]);
    }
  }
}

constexpr TileProducts<Pair, 4> products([]<int kRows, int kVectors>() { return &tile<kRows, kVectors>; });

}  // namespace

void multiply_pairs_in_vectors(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row,
                               std::int64_t a_depth, const Pair* b, std::int64_t columns, float* c, std::int64_t c_row,
                               bool add) {
  products.multiply(rows, depth, a, a_row, a_depth, b, columns, 16, c, c_row, add);
}

bool has_pair_products() { return has_bf16(); }

#else

void multiply_pairs_in_vectors(std::int64_t, std::int64_t, const Pair*, std::int64_t, std::int64_t, const Pair*,
                               std::int64_t, float*, std::int64_t, bool) {}

bool has_pair_products() { return false; }

#endif

}  // namespace vitrail::kernels
