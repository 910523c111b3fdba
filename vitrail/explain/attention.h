/// \file
/// Attention maps of one image on its grid of patches.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// The attention probabilities of a model for one image.
struct Attention {
  /// For each attention of the model [W, H, N, M] f32: W windows (1 if there are none), H heads, rows = queries. Each
  /// row sums to 1 (except in non-local blocks without a softmax).
  std::vector<Tensor> layers;
  bool class_token_alone = false;    ///< whether N = 1 in all of them: the rows of the class token
  std::vector<nn::TokenGrid> grids;  ///< for each attention, the positions of its queries and keys
  Tensor pool;                 ///< of the L queries of attention pooling, [1, H, L, M] f32; undefined if there is none
  models::TokenLayout layout;  ///< the grid of patches that a Query refers to
  Tensor logits;               ///< [num_classes]

  std::int64_t num_heads(std::int64_t layer) const { return layers.at(static_cast<std::size_t>(layer)).size(1); }
};

/// Whose attention record_attention() keeps.
enum class Looking {
  tokens,      ///< all tokens'
  class_token  ///< where the model has a class token, its alone, which takes a thousandth of the memory
};

/// Runs the model on x `[1, C, H, W]` (normalized), or [1, C, T, H, W] for models of videos, and keeps the
/// probabilities of every attention in it.
Attention record_attention(const models::ImageModel& model, const Tensor& x, DType dtype = DType::f32,
                           Looking looking = Looking::tokens);

/// The tokens whose attention a map shows.
struct Query {
  enum class Kind {
    summary,  ///< the class token; in a model without one, the mean over all patches
    patch,    ///< one patch
  };
  Kind kind = Kind::summary;
  std::int64_t row = 0;     ///< row of the patch, from the top
  std::int64_t column = 0;  ///< column of the patch, from the left
  std::int64_t frame = 0;   ///< of a video: a frame of the layout, which may stand for several frames of the clip
};

constexpr std::int64_t all_heads = -1;  ///< stands for the mean of all heads

/// How much of the query's attention in `layer` goes to each place of that layer's grid of keys: [rows, columns], of
/// videos [frames, rows, columns]. `head` is one head, or all_heads for the mean of all. Attention to class and
/// register tokens is left out, so the sum may be below 1; attention in a window is 0 outside of it. If the layer's
/// grid of queries is coarser than `layout`, the query is the token that covers the patch. If it is finer, as in the
/// first layers of convolutional networks, the map is the mean over the tokens in the patch, each of which is in one
/// patch only. Throws Error if the layer, head or patch does not exist.
Tensor attention_map(const Attention& attention, std::int64_t layer, std::int64_t head, const Query& query = {});

/// How much attention the learned queries of attention pooling pay to each patch, as the mean over the queries:
/// [rows, columns]. Throws Error if the model pools in another way, or has no such head.
Tensor pooling_map(const Attention& attention, std::int64_t head = all_heads);

/// The product over layers [H, N, N] of (A + I) / 2, where A is the mean over heads: attention rollout (Abnar & Zuidema
/// 2020, section 3), [N, N].
Tensor rolled_out(const std::vector<Tensor>& layers);
/// Whether rollout() is possible: only for models in which all tokens stay and attend to all others in every layer.
bool can_roll_out(const Attention& attention);
/// Attention rollout, see rolled_out(): rows sum to 1. Returns the query's row of it over the patches: [rows, columns].
/// Attention pooling is not part of it. Throws Error unless can_roll_out().
Tensor rollout(const Attention& attention, const Query& query = {});

}  // namespace vitrail::explain
