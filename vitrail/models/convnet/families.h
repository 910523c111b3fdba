/// \file
/// The families of convolutional networks.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family resnet_family;
extern const Family sagan_resnet_family;
extern const Family botnet_family;
extern const Family resnetv2_family;
extern const Family airbench_family;

/// The tables of their architectures (Family::table), each in a file of its own (NAME_registry.cpp).
std::string_view resnet_table();
std::string_view botnet_table();
std::string_view resnetv2_table();

}  // namespace vitrail::models
