/// \file
/// What the files of the attention kernel share: the description of the problem and its division into blocks.
///
/// The scores of one head are a matrix [N, M] of which only tiles ever exist: a block of queries × a block of keys.
/// Every product of such a tile (q kᵀ, p v, dout vᵀ, …) is one of tile_products.h, in either precision. A CPU without
/// instructions for pairs of bf16 converts bf16 to f32 while it packs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vitrail/kernels/attention.h"
#include "vitrail/kernels/cpu/products/tile_products.h"

namespace vitrail::kernels {

/// A tensor [B, H, rows, columns], or a part of one, that is read and written through its strides.
struct HeadsView {
  std::byte* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  ///< strides in elements
  std::int64_t samples = 1;
  std::int64_t group = 1;  ///< how many adjacent heads share one of the tensor's

  HeadsView() = default;
  /// A view for `heads` heads, of which several may share one of the tensor's; 0: as many as the tensor has.
  explicit HeadsView(const Tensor& x, std::int64_t heads = 0) {
    if (x.defined()) {
      data = x.raw();
      samples = x.size(0);
      group = heads == 0 ? 1 : heads / x.size(1);
      batch = x.stride(0);
      head = x.stride(1);
      row = x.stride(2);
      column = x.stride(3);
    }
  }
  /// The scores [H, queries, keys] by their distances, which are the elements of the rows of x [H, 2 C + 1]: query i is
  /// as far on as key i + keys - queries.
  static HeadsView of_distances(const Tensor& x, std::int64_t queries, std::int64_t keys) {
    HeadsView view;
    if (x.defined()) {
      view.data = x.raw() + (x.size(1) / 2 - (keys - queries)) * static_cast<std::int64_t>(sizeof(float));
      view.head = x.stride(0);
      view.row = -1;
      view.column = 1;
    }
    return view;
  }
  explicit operator bool() const { return data != nullptr; }
  /// Leaves out the first `rows` rows, of elements of this many bytes.
  void skip(std::int64_t rows, std::int64_t element_size) {
    if (data != nullptr) {
      data += rows * row * element_size;
    }
  }
  template <class T>
  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return reinterpret_cast<T*>(data) + b * batch + h / group * head + i * row;
  }
  /// at() for a tensor whose samples are repeated over a larger batch: sample b uses sample b mod `samples`.
  template <class T>
  T* repeated_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at<T>(b % samples, h, i);
  }
};

/// The operands, sizes and options of one call of the attention kernel.
struct AttentionProblem {
  std::int64_t batch, heads, queries, keys;
  /// The columns of q and k, without (`own`) and with (`dim`) those of q_extra and k_extra; and the columns of v.
  std::int64_t own, dim, value_dim;
  HeadsView q, k, v, out, dout, dq, dk, dv;
  HeadsView q_extra, k_extra, dq_extra;
  HeadsView mask, bias;
  bool mask_is_added = false;  ///< the mask is f32 instead of boolean
  float* log_sum = nullptr;
  float scale = 1;
  bool causal = false;
  const std::int64_t* lengths = nullptr;  ///< how many keys of each sample are real; null: all
  float dropout = 0;
  Philox draws{0, 0};
  bool is_bf16 = false;
  bool pairs = false;  ///< bf16 is multiplied by native dot products of pairs
  std::int64_t query_block = 0, key_block = 0;

  std::int64_t element_size() const { return is_bf16 ? 2 : 4; }  ///< bytes of an element of q, k, v and the like
  std::int64_t query_blocks() const { return (queries + query_block - 1) / query_block; }
  std::int64_t key_blocks() const { return (keys + key_block - 1) / key_block; }
  /// How many keys sample b has.
  std::int64_t keys_of(std::int64_t b) const { return lengths != nullptr ? lengths[b] : keys; }
  /// How many of them, from the first on, query i may see.
  std::int64_t visible(std::int64_t b, std::int64_t i) const {
    return causal ? std::clamp<std::int64_t>(i + keys - queries + 1, 0, keys_of(b)) : keys_of(b);
  }
  /// The stride of the rows in which dq is summed: `dim` rounded up to whole vectors, of at most 16 lanes.
  std::int64_t dq_row() const { return (dim + 15) / 16 * 16; }
  /// The beginning of the first block of queries of sample b that sees key j (or N).
  std::int64_t first_query(std::int64_t b, std::int64_t j) const {
    if (j >= keys_of(b)) {
      return queries;
    }
    const std::int64_t i = causal ? std::max<std::int64_t>(0, j - (keys - queries)) : 0;
    return i >= queries ? queries : i / query_block * query_block;
  }
};

/// Divides one block of memory into parts, each aligned to a cache line. Without memory it only counts what is used.
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

/// A thread's share of the backward pass: the blocks of keys [begin, end), counted through all heads. The gradient dq
/// sums over all blocks of keys of a head; if another share has some of them, the partial sum stays in `dq` and is
/// added afterwards. A share therefore has two such matrices of N rows of dq_row(): one for its first head, and one for
/// the heads after it.
struct BackwardPart {
  std::int64_t begin = 0, end = 0;
  float* dq[2] = {};
  HeadsView dbias;

  float* dq_of(const AttentionProblem& problem, std::int64_t head) const {
    return dq[head == begin / problem.key_blocks() ? 0 : 1];
  }
};

/// Computes the blocks of queries [begin, end), counted through all heads, with this scratch memory. Without v, it
/// writes the probabilities. Returns how much memory is needed; if `memory` is null, it does nothing else.
std::size_t attention_forward_part(const AttentionProblem& problem, std::int64_t begin, std::int64_t end,
                                   std::byte* memory);
/// Computes a share of the backward pass with this scratch memory. Returns how much memory is needed; if `memory` is
/// null, it does nothing else.
std::size_t attention_backward_part(const AttentionProblem& problem, const BackwardPart& part, std::byte* memory);

}  // namespace vitrail::kernels
