/// \file
/// Encoders inside networks that learn without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "vitrail/models/model.h"
#include "vitrail/nn/projection.h"

namespace vitrail::train {

/// An image model without its classifier, and heads on top of it, in one store: the encoder's parameters under their
/// own names, and those of the heads under "head." and "predictor.". The encoder keeps a store of its own with the same
/// tensors, so that it is saved and run by itself like any other model.
class EncoderNetwork : public nn::Network {
 public:
  /// Throws Error if the model has a classifier.
  explicit EncoderNetwork(models::Model image_model);

  /// The features [B, num_features] f32 of images x [B, C, H, W].
  Tensor encode(const Tensor& x, nn::Pass& pass) const { return encoder.net->forward(x, pass); }

  std::int64_t depth() const override { return encoder.net->depth(); }
  std::int64_t layer_of(const std::string& parameter) const override {
    return is_head(parameter) ? depth() + 1 : encoder.net->layer_of(parameter);
  }
  bool no_weight_decay(const std::string& parameter) const override {
    return !is_head(parameter) && !decays_tokens && encoder.net->no_weight_decay(parameter);
  }
  bool is_head(const std::string& parameter) const override {
    return parameter.starts_with("head.") || parameter.starts_with("predictor.");
  }

  models::Model encoder;
  bool decays_tokens = false;  ///< positions and tokens decay too, as in DINO's and MoCo v3's code

 protected:
  nn::Scope heads() { return nn::Scope(parameters); }
  /// Initializes the heads of an encoder that was loaded, whose store leaves new parameters as they are. To be called
  /// by the constructor that has made them.
  void initialize_heads() const;
};

/// An encoder with a projector `head` and, of MoCo v3, a predictor of one view's projection from the other's.
class ProjectedEncoder final : public EncoderNetwork {
 public:
  ProjectedEncoder(models::Model image_model, nn::ProjectorConfig projector);
  ProjectedEncoder(models::Model image_model, nn::ProjectorConfig projector, const nn::ProjectorConfig& predictor);

  nn::Projector head;
  std::optional<nn::Projector> predictor;
};

/// An encoder with DINO's head.
class DinoEncoder final : public EncoderNetwork {
 public:
  DinoEncoder(models::Model image_model, nn::DinoHeadConfig config);

  nn::DinoHead head;
};

}  // namespace vitrail::train
