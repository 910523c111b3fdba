/// \file
/// The families of Swin Transformers.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family swin_family;
extern const Family swin_v2_family;
extern const Family swin_v2_cr_family;

/// The table of their architectures (Family::table), in a file of its own (NAME_registry.cpp).
std::string_view swin_table();

}  // namespace vitrail::models
