// How the arguments of Vision Transformers are read: what timm's five classes have in common.
#pragma once

#include "vitrail/io/json.h"
#include "vitrail/models/vit.h"

namespace vitrail::models {

// Picture, patch and model sizes, qkv_bias, drop rates and norm_layer, with `config`'s own values where they are
// absent.
void read_shared(io::Fields& fields, VitConfig& config);

}  // namespace vitrail::models
