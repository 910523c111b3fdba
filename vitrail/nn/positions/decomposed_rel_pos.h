/// \file
/// Relative positions that are decomposed into one table per axis.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/images/depthwise.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

using ops::Size3;

/// Decomposed relative position embeddings (MViTv2: Li et al. 2022, eq. 3 and 4). To the score of query i and key j,
/// which lie at (t, h, w) of their grids, they add
///
/// ```text
/// b_ij = q_i · (R_t[t_i, t_j] + R_h[h_i, h_j] + R_w[w_i, w_j]).
/// ```
///
/// Parameters `rel_pos_t`, `rel_pos_h`, `rel_pos_w` [L, D] have a row for each distance along their axis. If the grids
/// of queries and keys differ in size, distances are counted on the larger one. A table of another length than a grid
/// needs is resized linearly, as torchvision does.
///
/// b is not added to the scores but folded into their product, since
///
/// ```text
/// [q_i, q_i · R_t[t_i, ·], …] · [k_j, onehot(t_j), …] = q_i · k_j + b_ij
/// ```
///
/// (ops::AttentionOptions::q_extra). So attention stays fused, and its memory linear in the number of tokens.
struct DecomposedRelPos {
  /// `lengths` are those of the tables of frames, rows and columns; 0 stands for no table.
  DecomposedRelPos(const Scope& scope, const Size3& lengths, std::int64_t head_dim, const Init& init);

  /// The columns to append to those of queries and keys.
  struct Columns {
    Tensor q;  ///< [B, P + N, H, R]
    Tensor k;  ///< [1, P + M, 1, R]
  };
  /// The columns for q [B, P + N, H, D], of which the first P tokens, the prefix, get zeros: scale · q kᵀ of the
  /// columns is b.
  Columns operator()(const Tensor& q, const Size3& queries, const Size3& keys, std::int64_t prefix, float scale) const;
  /// fvcore's count for all heads. Rows and columns are einsums, whose counts it rounds to four digits; frames are not.
  std::int64_t flops(std::int64_t heads, const Size3& queries, const Size3& keys) const;

  std::array<Tensor, 3> tables;  ///< undefined where an axis has no table
};

/// Resizes a table [L, D] to [length, D] by linear interpolation. Differentiable.
Tensor resized_rel_pos(const Tensor& table, std::int64_t length);

/// The number of distances between `queries` and `keys` places along an axis.
constexpr std::int64_t relative_distances(std::int64_t queries, std::int64_t keys) {
  return 2 * (queries > keys ? queries : keys) - 1;
}

}  // namespace vitrail::nn
