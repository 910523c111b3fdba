/// \file
/// Image models as parts of recurrent networks, and what config.json says of them.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/image_model.h"

namespace vitrail::io {
class Fields;
}

namespace vitrail::models {

/// Moves the parameters of an image model, which has no classifier, into the store of the network that it becomes a
/// part of. Throws Error, naming `source`, if it has one.
void adopt_encoder(Model& encoder, nn::ParameterStore& parameters, const std::string& source);
/// Initializes the parameters that such a network has of its own: a model that was loaded leaves its store so that it
/// would not.
void initialize_own(const nn::ParameterStore& parameters, const std::function<bool(const std::string& name)>& is_own);

/// The object "encoder" of config.json: the architecture, its arguments, and how images are prepared. Throws Error for
/// a model whose images an image processor of transformers prepares.
nlohmann::ordered_json encoder_json(const Model& encoder);
/// The model that the object "encoder" of a config.json describes, without its weights.
Model read_encoder(io::Fields& config);

}  // namespace vitrail::models
