/// \file
/// The base of the networks that read texts.
#pragma once

#include <cstdint>

#include "vitrail/models/text/language_body.h"
#include "vitrail/nn/network.h"

namespace vitrail::models {

/// The sizes of a network that reads texts.
struct TextShape {
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  ///< the longest text; unbounded_positions if there is no limit
  std::int64_t depth = 0;          ///< blocks, or layers
  std::int64_t dim = 0;
  std::int64_t num_heads = 0;     ///< 0: it has no attention
  std::int64_t num_kv_heads = 0;  ///< heads of keys and values
};

/// A network that reads texts.
struct TextNetwork : nn::Network {
  explicit TextNetwork(const nn::StoreOptions& store) : nn::Network(store) {}

  virtual TextShape shape() const = 0;
  /// Multiply-accumulates of the products, for one text of this many tokens.
  virtual std::int64_t flops(std::int64_t tokens) const = 0;
  /// The network as one that continues texts; null if it does not.
  virtual const LanguageBody* language() const { return nullptr; }

  std::int64_t depth() const override { return shape().depth; }
  bool no_weight_decay(const std::string&) const override { return false; }
};

}  // namespace vitrail::models
