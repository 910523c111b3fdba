/// \file
/// Which weights of a model are worth holding in a form for inference alone.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "vitrail/nn/network.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::models {

/// Names of weights, and how they are held (nn::StoreOptions::held).
using HeldWeights = std::map<std::string, nn::Held, std::less<>>;

/// The weights of the linear maps inside the blocks of a network that are not held already, but for the small layers
/// that compute relative positions.
HeldWeights held_weights(const nn::Network& net, const nn::Held& how);

}  // namespace vitrail::models
