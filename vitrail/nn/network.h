/// \file
/// Networks that can be trained: parameters, and what an optimizer has to know about them.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/nn/parameters.h"

namespace vitrail::nn {

/// The base of all models: a network that owns its parameters. Optimizers, checkpoints and moving averages need nothing
/// else.
struct Network {
  Network() = default;
  explicit Network(StoreOptions options) : parameters(std::move(options)) {}
  virtual ~Network() = default;
  Network(const Network&) = delete;  ///< the layers hold tensors of this very store
  Network& operator=(const Network&) = delete;

  /// The number of layers (blocks) between the embedding, layer 0, and the head, layer depth() + 1.
  virtual std::int64_t depth() const = 0;
  /// The layer that a parameter belongs to, 0 … depth() + 1, for layer-wise learning rates, in the order of timm's
  /// group_matcher(coarse=False).
  virtual std::int64_t layer_of(const std::string& parameter) const = 0;
  /// Whether a parameter has no weight decay, besides norms and biases: timm's no_weight_decay().
  virtual bool no_weight_decay(const std::string& parameter) const = 0;
  /// Whether a parameter belongs to the head ("head.weight", "head.bias", …), which a linear probe trains, and which is
  /// replaced for another number of classes.
  virtual bool is_head(const std::string& parameter) const = 0;
  /// Whether a parameter belongs to a backbone whose learning rate may be another one (--lr-backbone).
  virtual bool is_backbone(const std::string& /*parameter*/) const { return false; }

  ParameterStore parameters;
};

}  // namespace vitrail::nn
