/// \file
/// The class that makes a stand-alone model of a body.
#pragma once

#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"

namespace vitrail::models {

/// Calls adapt() of a body, see ImageModel::adapt(); returns `value` unchanged if the body has no such function.
template <class Body>
Tensor adapted(const Body& body, const std::string& parameter, const Tensor& value, const Shape& wanted,
               const nn::Size2& source) {
  if constexpr (requires { body.adapt(parameter, value, wanted, source); }) {
    return body.adapt(parameter, value, wanted, source);
  } else {
    return value;
  }
}

/// A stand-alone model: a body together with the store of its parameters. A body is constructed by Body(scope, config),
/// so that it can also be a part of another model and have its parameters in the store of that model. It has the
/// functions of ImageModel without deriving from it, and is asked about parameters by their names within the body.
/// Functions with an obvious default may be omitted: forward_heads (one head), frames (images), has_attention (it has),
/// no_weight_decay (none) and adapt (nothing changes).
template <class Body>
class Owner final : public ImageModel {
 public:
  /// Throws Error if the arguments contradict each other.
  template <class Config>
  explicit Owner(const Config& config, const nn::StoreOptions& store = {})
      : ImageModel(store), body(nn::Scope(parameters), config) {}

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const override { return body.forward_features(x, pass); }
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const override {
    return body.forward_head(features, pass, pre_logits);
  }
  Tensor forward(const Tensor& x, nn::Pass& pass) const override { return body.forward(x, pass); }
  std::vector<Tensor> forward_heads(const Tensor& x, nn::Pass& pass) const override {
    if constexpr (requires { body.forward_heads(x, pass); }) {
      return body.forward_heads(x, pass);
    } else {
      return {body.forward(x, pass)};
    }
  }

  std::int64_t frames() const override {
    if constexpr (requires { body.frames(); }) {
      return body.frames();
    } else {
      return 0;
    }
  }
  std::int64_t num_classes() const override { return body.num_classes(); }
  std::int64_t num_features() const override { return body.num_features(); }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override {
    return body.token_layout(height, width);
  }
  std::int64_t flops(std::int64_t height, std::int64_t width) const override { return body.flops(height, width); }
  bool takes_any_size() const override { return body.takes_any_size(); }
  bool has_attention() const override {
    if constexpr (requires { body.has_attention(); }) {
      return body.has_attention();
    } else {
      return true;
    }
  }

  std::int64_t depth() const override { return body.depth(); }
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool no_weight_decay(const std::string& parameter) const override {
    if constexpr (requires { body.no_weight_decay(parameter); }) {
      return body.no_weight_decay(parameter);
    } else {
      return false;
    }
  }
  bool is_head(const std::string& parameter) const override { return body.is_head(parameter); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
               const nn::Size2& source) const override {
    return adapted(body, parameter, value, wanted, source);
  }

  const Body body;
};

/// The body of a model that is known to be an `Owner<Body>`.
template <class Body>
const Body& known_body(const ImageModel& net) {
  return static_cast<const Owner<Body>&>(net).body;
}

/// The body of a model if it is an `Owner<Body>`, otherwise null.
template <class Body>
const Body* body_of(const ImageModel& net) {
  const auto* owner = dynamic_cast<const Owner<Body>*>(&net);
  return owner == nullptr ? nullptr : &owner->body;
}

}  // namespace vitrail::models
