/// \file
/// Features from inside a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// The features that the blocks or stages of a model give, for embed():
/// - `layer` is a block, from 0, or from the end if it is negative; unset: the last;
/// - `pool` "token" takes the class token, "avg" the mean of all patches or pixels; "" is "token" where there is one;
/// - "last4" joins the class tokens of `layer` and the three blocks before it, as DINO's eval_linear.py.
///
/// Vision Transformers have their final norm applied to the tokens of each block, as DINO's get_intermediate_layers and
/// timm's get_intermediate_layers(norm=True). The model must outlive the function. Throws Error if the model has no
/// such layer or no class token.
FeatureFunction layer_features(const models::Model& model, std::optional<std::int64_t> layer, const std::string& pool);

}  // namespace vitrail::train
