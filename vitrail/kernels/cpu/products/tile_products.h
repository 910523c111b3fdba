/// \file
/// Products C = A B or C += A B of matrices that fit into the caches; larger products are composed of them. Operands:
///
/// ```text
/// A  words, which are read one by one at any two strides and broadcast,
/// B  words, packed in panels some vectors wide, the rows of a panel one behind the other,
/// C  f32 rows, padded to whole vectors.
/// ```
///
/// A `*word*` has 32 bits: one f32, or a Pair of bf16 that are adjacent along the summed dimension, which is what the
/// bf16 dot product instructions take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace vitrail::kernels {

using Pair = std::uint32_t;  ///< two bf16, the first in the lower half

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

constexpr int tile_rows = 6;  ///< rows of the largest tile of a micro-kernel, whose sums fill the registers

/// The micro-kernels of one instruction set: of[r - 1][v - 1] computes C = A B, or C += A B if `add`, for r rows and v
/// vectors of columns of C, which stay in registers during the loop over the depth. Word (i, p) of A is
/// a[i a_row + p a_depth]; B is one panel, dense.
template <class Word, int kVectors>
struct TileProducts {
  static constexpr int rows = tile_rows;
  static constexpr int vectors = kVectors;  ///< vectors in a row of a panel of B
  using Tile = void (*)(std::int64_t depth, const Word* a, std::int64_t a_row, std::int64_t a_depth, const Word* b,
                        float* c, std::int64_t c_row, bool add);
  Tile of[rows][vectors] = {};

  /// `tile.operator()<r, v>()` returns the micro-kernel for r rows and v vectors.
  template <class Function>
  explicit constexpr TileProducts(Function tile) {
    fill(tile, std::make_integer_sequence<int, rows * vectors>());
  }

  /// C [rows, columns] = A [rows, depth] B [depth, columns], or C += A B if `add`; `columns` is a multiple of `lanes`,
  /// the lanes of a vector.
  void multiply(std::int64_t rows_wanted, std::int64_t depth, const Word* a, std::int64_t a_row, std::int64_t a_depth,
                const Word* b, std::int64_t columns, std::int64_t lanes, float* c, std::int64_t c_row, bool add) const {
    for (std::int64_t column = 0; column < columns; column += vectors * lanes) {
      const std::int64_t width = std::min<std::int64_t>(vectors, (columns - column) / lanes);
      for (std::int64_t i = 0; i < rows_wanted; i += rows) {
        const std::int64_t height = std::min<std::int64_t>(rows, rows_wanted - i);
        of[height - 1][width - 1](depth, a + i * a_row, a_row, a_depth, b + column * depth, c + i * c_row + column,
                                  c_row, add);
      }
    }
  }

 private:
  template <class Function, int... kIndex>
  constexpr void fill(Function tile, std::integer_sequence<int, kIndex...>) {
    ((of[kIndex / vectors][kIndex % vectors] = tile.template operator()<kIndex / vectors + 1, kIndex % vectors + 1>()),
     ...);
  }
};

/// TileProducts::multiply() of pairs, in panels of 64 words. One of a_row and a_depth must be 1.
using MultiplyPairs = void(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row,
                           std::int64_t a_depth, const Pair* b, std::int64_t columns, float* c, std::int64_t c_row,
                           bool add);
/// multiply() of pairs by the vector instructions of AVX512-BF16. Requires has_pair_products().
MultiplyPairs multiply_pairs_in_vectors;
/// multiply() of pairs by AMX's tiles. Requires has_amx().
MultiplyPairs multiply_pairs_in_tiles;

/// Whether this CPU has dot product instructions for pairs of bf16.
bool has_pair_products();

}  // namespace vitrail::kernels
