/// \file
/// The families of Vision Transformers.
#pragma once

#include <string_view>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family vit_family;
extern const Family vit_distilled_family;
extern const Family vit_relpos_family;
extern const Family vit_hybrid_family;
extern const Family eva_family;
extern const Family beit_family;
extern const Family sam_family;
extern const Family vit_mae_family;  ///< masked autoencoders, in transformers' layout; no architecture names of its own

/// The tables of their architectures (Family::table), each in a file of its own (NAME_registry.cpp).
std::string_view vit_table();
std::string_view vit_hybrid_table();
std::string_view eva_table();
std::string_view beit_table();
std::string_view vit_sam_table();

}  // namespace vitrail::models
