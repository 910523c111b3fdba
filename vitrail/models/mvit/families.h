/// \file
/// The families of multiscale Vision Transformers.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family mvit_family;
extern const Family mvit_video_family;

/// The tables of their architectures (Family::table), each in a file of its own (NAME_registry.cpp).
std::string_view mvit_table();
std::string_view mvit_video_table();

}  // namespace vitrail::models
