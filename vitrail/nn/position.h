// Positions of tokens: absolute ones added to them, relative ones added to attention's scores.
#pragma once

#include <cstdint>

#include "vitrail/nn/mlp.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Fixed two-dimensional sine-cosine positions (MAE: He et al. 2022, as its get_2d_sincos_pos_embed): [1, prefix + rows
// · columns, D] f32. With ω_i = 10000^(-4 i / D), i < D / 4, a patch at (row, column) has [sin(column ω), cos(column
// ω), sin(row ω), cos(row ω)]; the prefix tokens have zeros. Row and column are multiplied by `scale`: for positions on
// the ground, the ground sample distance in units of one metre (Scale-MAE: Reed et al. 2023, with G = 1 m). Error
// unless D is divisible by 4.
Tensor sincos_positions(const Size2& grid, std::int64_t dim, std::int64_t prefix, double scale = 1);

// Learned positions [1, prefix + rows · columns, D] of the grid `from` for the grid `to`, as timm's
// resample_abs_pos_embed: the prefix as it is, the rest by bicubic interpolation with antialiasing. Differentiable.
Tensor resample_positions(const Tensor& positions, const Size2& from, const Size2& to, std::int64_t prefix);

// Index of every pair of patches of a window into a table over their offsets, [A, A] i64 with A = rows · columns:
// (Δrow + rows - 1)(2 columns - 1) + (Δcolumn + columns - 1) (Swin: Liu et al. 2021). With `prefix` tokens in front (a
// class token, registers), [A + prefix, A + prefix] and three more entries: prefix to patch, patch to prefix, prefix to
// prefix (BEiT).
Tensor relative_position_index(const Size2& window, std::int64_t prefix);

// A table [V, H] of biases at such an index [N, M]: [1, H, N, M].
Tensor bias_at(const Tensor& table, const Tensor& index);

// The offsets (Δrow, Δcolumn) of all pairs of a window on a logarithmic scale, [(2 rows - 1)(2 columns - 1), 2]:
// sign(Δ) log(1 + |Δ|).
Tensor log_offsets(const Size2& window);
// The same after Swin V2 (Liu et al. 2022, eq. 4), with 8 at the edge of a window of the size `span`, the window itself
// or the one that a model was trained with first: sign(Δ) log₂(1 + 8 |Δ| / (span - 1)) / 3.
Tensor log_offsets(const Size2& window, const Size2& span);

// A learned bias for each head and offset, timm's RelPosBias: parameter `relative_position_bias_table`
// [(2 rows - 1)(2 columns - 1) + 3 (with prefix tokens), H].
struct RelPosBias {
  RelPosBias(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t prefix);
  Tensor operator()(Pass& pass) const;  // [1, H, N, N] f32
  std::int64_t flops() const { return 0; }

  Tensor table;
  Tensor index;
};

// The same from a small network of the offset, timm's RelPosMlp (after Swin V2: Liu et al. 2022): with the offsets
// (Δrow, Δcolumn) on a logarithmic scale, bias = mlp(offset), and in mode `swin` bias = 16 σ(mlp(offset)). Prefix
// tokens have a bias of 0. Parameters `mlp.fc1` [hidden, 2], `mlp.fc2` [H, hidden].
struct RelPosMlp {
  RelPosMlp(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t hidden, std::int64_t prefix,
            bool swin);
  Tensor operator()(Pass& pass) const;  // [1, H, N, N] f32
  std::int64_t flops() const { return mlp.flops(offsets.size(0)); }

  bool swin;
  std::int64_t prefix;
  Mlp mlp;
  Tensor offsets;  // [(2 rows - 1)(2 columns - 1), 2]
  Tensor index;
};

// A RelPosBias table of one square window for another window, as timm's resize_rel_pos_bias_table: bilinear at offsets
// that grow geometrically from the centre. `from` and `to` are the windows.
Tensor resample_bias_table(const Tensor& table, const Size2& from, const Size2& to);

}  // namespace vitrail::nn
