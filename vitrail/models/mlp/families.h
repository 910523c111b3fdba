/// \file
/// The families of models of linear maps: those that mix tokens without attention, and the linear classifier.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family mlp_mixer_family;
extern const Family s2_mlp_family;
extern const Family cycle_mlp_family;
extern const Family linear_classifier_family;

/// The table of MlpMixer's architectures (Family::table), in a file of its own (NAME_registry.cpp).
std::string_view mlp_mixer_table();

}  // namespace vitrail::models
