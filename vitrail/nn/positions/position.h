/// \file
/// Positions of tokens: absolute ones, which are added to the tokens, and relative ones, which are added to attention's
/// scores.
#pragma once

#include <cstdint>

#include "vitrail/nn/mlp.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Fixed two-dimensional sine-cosine positions (MAE: He et al. 2022, get_2d_sincos_pos_embed):
/// [1, prefix + rows · columns, D] f32. With ω_i = 10000^(-4 i / D), i < D / 4, a patch at (row, column) has
/// [sin(column ω), cos(column ω), sin(row ω), cos(row ω)]; the prefix tokens have zeros. Row and column are multiplied
/// by `scale`: for positions on the ground, that is the ground sample distance in metres (Scale-MAE: Reed et al. 2023,
/// with G = 1 m). Throws Error unless D is divisible by 4.
Tensor sincos_positions(const Size2& grid, std::int64_t dim, std::int64_t prefix, double scale = 1);

/// How learned positions are resampled bicubically for another grid:
/// - timm: with antialiasing (resample_abs_pos_embed)
/// - transformers: without it, to a size (interpolate_pos_encoding)
/// - dino: without it, by a scale factor with 0.1 patches added to the size (facebookresearch/dino,
///   interpolate_pos_encoding), so that places lie a little nearer to each other than the size asks for
enum class PositionResize { timm, transformers, dino };

/// Resamples learned positions [1, prefix + rows · columns, D] from the grid `from` to the grid `to`: the prefix is
/// kept, the rest is interpolated. Differentiable. Throws Error if the positions are not those of `from` and `prefix`.
Tensor resample_positions(const Tensor& positions, const Size2& from, const Size2& to, std::int64_t prefix,
                          PositionResize resize = PositionResize::timm);

/// The index of every pair of patches of a window into a table over their offsets, [A, A] i64 with A = rows · columns:
/// (Δrow + rows - 1)(2 columns - 1) + (Δcolumn + columns - 1) (Swin: Liu et al. 2021). With `prefix` tokens in front (a
/// class token, registers), it is [A + prefix, A + prefix], and the table has three more entries: prefix to patch,
/// patch to prefix, prefix to prefix (BEiT).
Tensor relative_position_index(const Size2& window, std::int64_t prefix);

/// Looks up a table [V, H] of biases at an index [N, M], as of relative_position_index(): [1, H, N, M].
Tensor bias_at(const Tensor& table, const Tensor& index);

/// The offsets (Δrow, Δcolumn) of all pairs of patches of a window on a logarithmic scale, sign(Δ) log(1 + |Δ|):
/// [(2 rows - 1)(2 columns - 1), 2].
Tensor log_offsets(const Size2& window);
/// The offsets of all pairs of patches of a window on Swin V2's logarithmic scale (Liu et al. 2022, eq. 4), sign(Δ)
/// log₂(1 + 8 |Δ| / (span - 1)) / 3: [(2 rows - 1)(2 columns - 1), 2]. The offset to the edge of a window of the size
/// `span` counts as 8; that is the window itself or the one that a model was first trained with.
Tensor log_offsets(const Size2& window, const Size2& span);

/// timm's RelPosBias: a learned bias for each head and offset. Parameter `relative_position_bias_table`
/// [(2 rows - 1)(2 columns - 1), H], with three more rows if there are prefix tokens.
struct RelPosBias {
  RelPosBias(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t prefix);
  Tensor operator()(Pass& pass) const;  ///< [1, H, N, N] f32
  std::int64_t flops() const { return 0; }

  Tensor table;
  Tensor index;
};

/// timm's RelPosMlp (after Swin V2: Liu et al. 2022): a bias for each head from a small network of the offset. With the
/// offsets (Δrow, Δcolumn) on a logarithmic scale, bias = mlp(offset), and in mode `swin` bias = 16 σ(mlp(offset)).
/// Prefix tokens have a bias of 0. Parameters `mlp.fc1` [hidden, 2] and `mlp.fc2` [H, hidden].
struct RelPosMlp {
  RelPosMlp(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t hidden, std::int64_t prefix,
            bool swin);
  Tensor operator()(Pass& pass) const;  ///< [1, H, N, N] f32
  std::int64_t flops() const { return mlp.flops(offsets.size(0)); }

  bool swin;
  std::int64_t prefix;
  Mlp mlp;
  Tensor offsets;  ///< [(2 rows - 1)(2 columns - 1), 2]
  Tensor index;
};

/// Resamples the RelPosBias table of a square window `from` for another window `to`, as timm's
/// resize_rel_pos_bias_table: bilinearly at offsets that grow geometrically from the centre. Throws Error if the table
/// is not that of `from`.
Tensor resample_bias_table(const Tensor& table, const Size2& from, const Size2& to);
/// The same as transformers' BEiT: the table is interpolated bilinearly as if it were an image.
Tensor interpolate_bias_table(const Tensor& table, const Size2& from, const Size2& to);

}  // namespace vitrail::nn
