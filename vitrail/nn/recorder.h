// Gathers what a person wants to see of a forward pass.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Rows and columns of something on a picture: its size, a patch's, or a grid's.
using Size2 = std::array<std::int64_t, 2>;

// Where the queries and keys of an attention map lie on the picture: on grids that cover it, row by row, behind
// `prefix` tokens of another kind. With a window (Swin: Liu et al. 2021) both grids are the same, rolled up and left by
// `shift`, filled up at the bottom and the right to whole windows, and each window, row by row, attends to itself
// alone. Of a video, the rows of its frames lie below each other.
struct AttentionPlace {
  std::int64_t prefix = 0;
  Size2 queries = {0, 0};
  Size2 keys = {0, 0};
  Size2 window = {0, 0};
  Size2 shift = {0, 0};
  std::int64_t query_frames = 1;
  std::int64_t key_frames = 1;

  bool windowed() const { return window[0] > 0; }
};

// Hand one to a Pass and the model fills it. Layers ask wants_… first and compute maps only then, so that nobody pays
// who does not look.
class Recorder {
 public:
  explicit Recorder(bool features, bool attention) : features_wanted_(features), attention_wanted_(attention) {}

  bool wants_features() const { return features_wanted_; }
  bool wants_attention() const { return attention_wanted_; }
  // After block i of a model whose blocks are alike, [B, N, D], or after stage i of others, [B, N, D], [B, H, W, C] or
  // [B, C, H, W] as in the reference: as "features.{i}". A decoder's blocks are counted on from its encoder's.
  void feature(int block, const Tensor& x) { features_[block] = x.detach(); }
  // After stage i of the convolutional network in front of a hybrid's blocks, [B, C, H, W]: as "features.stem.{i}".
  void stem_feature(int stage, const Tensor& x) { stem_features_[stage] = x.detach(); }
  // The probabilities of attention i, counted from the input: [B, H, N, M] f32, with windows [B W, H, N, M], as
  // "attention.{i}". Without a place, queries and keys are all the model's tokens (TokenLayout), or those that it was
  // given to see (MaskedAutoencoder).
  void attention(int index, const Tensor& probabilities, const std::optional<AttentionPlace>& place = {}) {
    attention_[index] = probabilities.detach();
    if (place) {
      places_[index] = *place;
    }
  }
  // The probabilities of L learned queries that pool M tokens, the patches behind any others: [B, H, L, M] f32, as
  // "attention.pool".
  void pool_attention(const Tensor& probabilities) { pool_attention_ = probabilities.detach(); }

  const std::map<int, Tensor>& features() const { return features_; }
  const std::map<int, Tensor>& stem_features() const { return stem_features_; }
  const std::map<int, Tensor>& attention() const { return attention_; }
  const std::map<int, AttentionPlace>& places() const { return places_; }
  const Tensor& pool_attention() const { return pool_attention_; }  // undefined if there was none

 private:
  bool features_wanted_;
  bool attention_wanted_;
  std::map<int, Tensor> features_;
  std::map<int, Tensor> stem_features_;
  std::map<int, Tensor> attention_;
  std::map<int, AttentionPlace> places_;
  Tensor pool_attention_;
};

}  // namespace vitrail::nn
