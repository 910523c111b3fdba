// Attention maps of one picture on its grid of patches.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

// What a model attended to in one picture.
struct Attention {
  // Per attention of the model [W, H, N, M] f32: W windows (1 if there are none), rows = queries, each row sums to 1
  // (but for non-local blocks without a softmax).
  std::vector<Tensor> layers;
  std::vector<nn::AttentionPlace> places;  // where the queries and keys of each lie
  Tensor pool;                             // of attention pooling's L queries, [1, H, L, M] f32; undefined if none
  models::TokenLayout layout;              // the grid of patches that a Query is on
  Tensor logits;                           // [num_classes]

  std::int64_t num_heads(std::int64_t layer) const { return layers.at(static_cast<std::size_t>(layer)).size(1); }
};

// Runs the model on x [1, C, H, W] (normalized), of models of videos [1, C, T, H, W], and keeps the probabilities of
// every attention in it.
Attention record_attention(const models::ImageModel& model, const Tensor& x, DType dtype = DType::f32);

// Whose attention a map shows.
struct Query {
  enum class Kind {
    summary,  // the class token; in a model without one, the mean over all patches
    patch,    // one patch
  };
  Kind kind = Kind::summary;
  std::int64_t row = 0;  // of the patch, from the top left
  std::int64_t column = 0;
  std::int64_t frame = 0;  // of a video: of the layout's, not of the clip's, of which several may make one
};

constexpr std::int64_t all_heads = -1;

// How much of the query's attention in `layer` goes to each place of that layer's grid of keys: [rows, columns], of
// videos [frames, rows, columns]. `head` is one head or all_heads for their mean. Attention on class and register
// tokens is left out, so the sum may be below 1; a window's is 0 outside. Where the layer's grid of queries is coarser
// than `layout`, the query is the token that covers the patch; where it is finer, as in the first layers of
// convolutional networks, the mean over the tokens in the patch, each of which is in one patch alone. Error if the
// layer, head or patch does not exist.
Tensor attention_map(const Attention& attention, std::int64_t layer, std::int64_t head, const Query& query = {});

// The same for the learned queries of attention pooling, on the grid of patches: their mean. Error if the model pools
// in another way, or has no such head.
Tensor pooling_map(const Attention& attention, std::int64_t head = all_heads);

// Attention rollout (Abnar & Zuidema 2020, section 3): the product over layers of (A + I) / 2, A being the mean over
// heads, rows normalized; the query's row of it over the patches: [rows, columns]. Attention pooling takes no part in
// it. Only for models in which all tokens stay and see all others in every layer: Error otherwise.
bool can_roll_out(const Attention& attention);
Tensor rollout(const Attention& attention, const Query& query = {});

}  // namespace vitrail::explain
