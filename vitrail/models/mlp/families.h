/// \file
/// The families of models that mix tokens without attention.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family mlp_mixer_family;
extern const Family s2_mlp_family;
extern const Family cycle_mlp_family;

/// The table of MlpMixer's architectures (Family::table), in a file of its own (NAME_registry.cpp).
std::string_view mlp_mixer_table();

}  // namespace vitrail::models
