/// \file
/// The families of recurrent models of images.
#pragma once

#include "vitrail/models/base/family.h"

namespace vitrail::models {

extern const Family row_network_family;

}  // namespace vitrail::models
