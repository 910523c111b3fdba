// What the files of the attention kernel share: the problem, its blocks, and the products of native bf16 pairs.
//
// The scores of one head are a matrix [N, M] that is only ever there in tiles: a block of queries × a block of keys.
// Every product of such a tile (q kᵀ, p v, doᵀ v, …) is C = A B or C += A B with
//   A  words that are broadcast one by one, at any two strides,
//   B  packed in panels of vectors of words, one row of a panel behind the other,
//   C  f32 rows, padded to whole vectors.
// A *word* has 32 bits: one f32, or a Pair of bf16 that lie next to each other along the summed dimension, which is
// what the bf16 dot product instructions take. So both precisions run the same algorithm. A CPU without such
// instructions converts bf16 to f32 while it packs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "vitrail/kernels/attention.h"

namespace vitrail::kernels {

using Pair = std::uint32_t;  // two bf16, the first in the lower half

// A tensor [B, H, rows, columns] or part of one, read and written through strides.
struct HeadsView {
  std::byte* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  // strides in elements
  std::int64_t samples = 1;

  HeadsView() = default;
  explicit HeadsView(const Tensor& x) {
    if (x.defined()) {
      data = x.raw();
      samples = x.size(0);
      batch = x.stride(0);
      head = x.stride(1);
      row = x.stride(2);
      column = x.stride(3);
    }
  }
  explicit operator bool() const { return data != nullptr; }
  template <class T>
  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return reinterpret_cast<T*>(data) + b * batch + h * head + i * row;
  }
  // The same where the samples serve a larger batch in turn.
  template <class T>
  T* repeated_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at<T>(b % samples, h, i);
  }
};

struct AttentionProblem {
  std::int64_t batch, heads, queries, keys;
  std::int64_t own, dim, value_dim;  // columns of q and k: their own, and with those of q_more and k_more; and of v
  HeadsView q, k, v, out, dout, dq, dk, dv;
  HeadsView q_more, k_more, dq_more;
  HeadsView mask, bias;
  bool mask_is_added = false;  // f32 instead of boolean
  float* log_sum = nullptr;
  float scale = 1;
  bool causal = false;
  float dropout = 0;
  Philox draws{0, 0};
  bool is_bf16 = false;
  bool pairs = false;  // bf16 by native dot products
  std::int64_t query_block = 0, key_block = 0;

  std::int64_t query_blocks() const { return (queries + query_block - 1) / query_block; }
  std::int64_t key_blocks() const { return (keys + key_block - 1) / key_block; }
  // How many of the keys, from the first on, query i may see.
  std::int64_t visible(std::int64_t i) const {
    return causal ? std::clamp<std::int64_t>(i + keys - queries + 1, 0, keys) : keys;
  }
  // From row to row of the sums of dq: no vector is longer than 16 lanes.
  std::int64_t dq_row() const { return (dim + 15) / 16 * 16; }
  // The beginning of the first block of queries that sees key j (or N).
  std::int64_t first_query(std::int64_t j) const {
    const std::int64_t i = causal ? std::max<std::int64_t>(0, j - (keys - queries)) : 0;
    return i >= queries ? queries : i / query_block * query_block;
  }
};

// Hands out parts of one block of memory, each aligned to a cache line. Without memory it only counts.
class Arena {
 public:
  explicit Arena(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* take(std::int64_t count) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

// The micro-kernels of one instruction set: of[r - 1][v - 1] does C = A B, or C += A B if `add`, for r rows and v
// vectors of columns, all held in registers while it runs over the depth. Word (i, p) of A is a[i a_row + p a_depth]; B
// is one panel, dense.
template <class Word, int kVectors>
struct TileProducts {
  static constexpr int rows = 6;
  static constexpr int vectors = kVectors;  // a panel of B is so wide
  using Tile = void (*)(std::int64_t depth, const Word* a, std::int64_t a_row, std::int64_t a_depth, const Word* b,
                        float* c, std::int64_t c_row, bool add);
  Tile of[rows][vectors] = {};

  // `tile.operator()<r, v>()` gives the micro-kernel of a size.
  template <class Function>
  explicit constexpr TileProducts(Function tile) {
    fill(tile, std::make_integer_sequence<int, rows * vectors>());
  }

  // C [rows, columns] (+)= A [rows, depth] B [depth, columns], `columns` a multiple of the vector's `lanes`.
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

// TileProducts::multiply() of pairs in panels of 64 words, by AVX512-BF16 or by AMX, where one of a_row and a_depth
// is 1. Only for a CPU that has them: they do nothing where they are compiled for another architecture.
using MultiplyPairs = void(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row,
                           std::int64_t a_depth, const Pair* b, std::int64_t columns, float* c, std::int64_t c_row,
                           bool add);
MultiplyPairs multiply_pairs_in_vectors;
MultiplyPairs multiply_pairs_in_tiles;

// A thread's share of backward: the blocks of keys [begin, end) of all heads, counted through. dq gathers from all
// blocks of keys of a head: where another share has some of them, it stays in `dq`, to be summed afterwards. So a share
// has two such matrices, N rows of dq_row(): for its first head, and for those after it.
struct BackwardPart {
  std::int64_t begin = 0, end = 0;
  float* dq[2] = {};
  HeadsView dbias;

  float* dq_of(const AttentionProblem& problem, std::int64_t head) const {
    return dq[head == begin / problem.key_blocks() ? 0 : 1];
  }
};

// The work on the blocks of queries [begin, end) of all heads (on the share, in backward) with this scratch memory.
// Returns how much memory it needs; without memory it does no more than that. Forward without v writes probabilities.
std::size_t attention_forward_part(const AttentionProblem& problem, std::int64_t begin, std::int64_t end,
                                   std::byte* memory);
std::size_t attention_backward_part(const AttentionProblem& problem, const BackwardPart& part, std::byte* memory);

}  // namespace vitrail::kernels
