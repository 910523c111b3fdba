#include "vitrail/train/pretrain/encoder_network.h"

#include <utility>

namespace vitrail::train {
namespace {

nn::ProjectorConfig behind(const EncoderNetwork& network, nn::ProjectorConfig config) {
  config.in = network.encoder.net->num_features();
  return config;
}

nn::DinoHeadConfig behind(const EncoderNetwork& network, nn::DinoHeadConfig config) {
  config.in_dim = network.encoder.net->num_features();
  return config;
}

}  // namespace

EncoderNetwork::EncoderNetwork(models::Model image_model) : encoder(std::move(image_model)) {
  check(encoder.net->num_classes() == 0, "the encoder '{}' has a classifier", encoder.architecture);
  parameters = encoder.net->parameters;  // the same tensors
}

void EncoderNetwork::initialize_heads() const {
  for (const nn::Parameter& parameter : parameters.all()) {
    if (is_head(parameter.name) && parameters.options().fill == nn::Fill::leave) {
      parameters.initialize(parameter.name);
    }
  }
}

ProjectedEncoder::ProjectedEncoder(models::Model image_model, nn::ProjectorConfig projector)
    : EncoderNetwork(std::move(image_model)), head(heads() / "head", behind(*this, projector)) {
  initialize_heads();
}

ProjectedEncoder::ProjectedEncoder(models::Model image_model, nn::ProjectorConfig projector,
                                   const nn::ProjectorConfig& prediction)
    : EncoderNetwork(std::move(image_model)), head(heads() / "head", behind(*this, projector)) {
  predictor.emplace(heads() / "predictor", prediction);
  initialize_heads();
}

DinoEncoder::DinoEncoder(models::Model image_model, nn::DinoHeadConfig config)
    : EncoderNetwork(std::move(image_model)), head(heads() / "head", behind(*this, config)) {
  if (config.norm_last_layer) {
    parameters.set_trainable("head.last_layer.weight_g", false);
  }
  initialize_heads();
}

}  // namespace vitrail::train
