/// \file
/// The keys and values of tokens that attention has seen already.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The keys and values of one attention layer for the tokens so far, so that a model that continues a text computes
/// those of its new tokens alone. The memory grows by doubling. Not for training.
class KeyValueCache {
 public:
  std::int64_t length() const { return length_; }  ///< the number of tokens so far

  /// Adds the keys [B, G, N, d] and values [B, G, N, e] of N tokens. Returns views of all keys and values so far,
  /// [B, G, length(), d] and [B, G, length(), e]. Throws Error if batch, heads, widths or dtype change.
  std::pair<Tensor, Tensor> append(const Tensor& keys, const Tensor& values);
  /// Keeps the samples at `indices`, in this order; a sample may come several times (the beams of a search).
  void select(const std::vector<std::int64_t>& indices);
  /// Forgets the tokens behind the first `length`. Throws Error if there are fewer.
  void truncate(std::int64_t length);
  std::size_t bytes() const { return keys_.defined() ? keys_.bytes() + values_.bytes() : 0; }  ///< memory that is held

 private:
  Tensor keys_;  // [B, G, capacity, d]
  Tensor values_;
  std::int64_t length_ = 0;
};

}  // namespace vitrail::nn
