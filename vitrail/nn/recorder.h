/// \file
/// Recording of the features and attention maps of a forward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

struct TokenGrid;  // positions/token_grid.h

/// What one layer has recorded.
struct Recorded {
  /// The path of the layer, as in the names of its parameters: "blocks.3.attn", "vision_model.blocks.3.attn".
  std::string name;
  Tensor value;
  std::shared_ptr<const TokenGrid> grid;  ///< of an attention map: positions of queries and keys; null: not given
};

/// Records by the names of their layers, in the order of their first recording.
class Records {
 public:
  /// Adds a record. It replaces one of the same name, which comes from the first run of a block that is run again in
  /// backward.
  void put(Recorded record) {
    const auto it = std::ranges::find(all_, record.name, &Recorded::name);
    if (it == all_.end()) {
      all_.push_back(std::move(record));
    } else {
      *it = std::move(record);
    }
  }
  /// The record of the layer `name`. Throws Error if there is none.
  const Recorded& at(std::string_view name) const {
    const auto it = std::ranges::find(all_, name, &Recorded::name);
    check(it != all_.end(), "no layer '{}' has been recorded", name);
    return *it;
  }
  const Recorded& operator[](std::size_t index) const { return all_.at(index); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<Recorded> all_;
};

/// Records a forward pass if it is given to its Pass. Layers ask wants_features() and wants_attention() first, and
/// compute maps only if they are wanted, so that recording costs nothing otherwise.
class Recorder {
 public:
  /// With a number of `queries`, only the rows of so many are kept of each attention map, those of the first tokens;
  /// the others are gone as soon as the layer is done. 0: all are kept.
  explicit Recorder(bool features, bool attention, std::int64_t queries = 0)
      : features_wanted_(features), attention_wanted_(attention), queries_(queries) {}

  /// Records the attention of these layers alone, as a part of the tape, so that a loss can be made of it.
  explicit Recorder(std::vector<std::string> traced)
      : features_wanted_(false), attention_wanted_(false), queries_(0), traced_(std::move(traced)) {}

  bool wants_features() const { return features_wanted_; }
  bool wants_attention() const { return attention_wanted_; }
  bool traces(std::string_view layer) const { return std::ranges::find(traced_, layer) != traced_.end(); }
  /// Records the output [B, N, D] of a block in models whose blocks are alike; in others the output of a stage,
  /// [B, N, D], [B, H, W, C] or [B, C, H, W], as in the reference.
  void feature(std::string name, const Tensor& x) { features_.put({std::move(name), x.detach(), nullptr}); }
  /// Records the output of a stage of the convolutional network before the blocks of a hybrid model, [B, C, H, W].
  void stem_feature(std::string name, const Tensor& x) { stem_features_.put({std::move(name), x.detach(), nullptr}); }
  /// Records the probabilities of an attention: [B, H, N, M] f32, with windows [B W, H, N, M]. Without a grid, queries
  /// and keys are all tokens of the model (TokenLayout), or those that it was given to see (MaskedAutoencoder).
  void attention(std::string name, const Tensor& probabilities, std::shared_ptr<const TokenGrid> grid = nullptr) {
    const Tensor all = probabilities.detach();
    const bool some = queries_ > 0 && queries_ < all.size(2);
    attention_.put({std::move(name), some ? all.narrow(2, 0, queries_).contiguous() : all, std::move(grid)});
  }
  /// Records the probabilities of L learned queries that pool M tokens, the patches after any others: [B, H, L, M] f32.
  void pool_attention(std::string name, const Tensor& probabilities) {
    pool_attention_.put({std::move(name), probabilities.detach(), nullptr});
  }

  /// Records the probabilities of an attention that traces() wants, which are on the tape: [B, H, N, M] f32.
  void trace(std::string name, const Tensor& probabilities) {
    attention_.put({std::move(name), probabilities, nullptr});
  }

  const Records& features() const { return features_; }
  const Records& stem_features() const { return stem_features_; }
  const Records& attention() const { return attention_; }
  const Records& pool_attention() const { return pool_attention_; }

 private:
  bool features_wanted_;
  bool attention_wanted_;
  std::int64_t queries_;
  std::vector<std::string> traced_;
  Records features_;
  Records stem_features_;
  Records attention_;
  Records pool_attention_;
};

}  // namespace vitrail::nn
