/// \file
/// Reads the arguments of Vision Transformers that timm's five classes have in common.
#pragma once

#include "vitrail/io/json.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::models {

/// Reads image, patch and model sizes, qkv_bias, drop rates and norm_layer; those that are absent keep the values of
/// `config`.
void read_shared(io::Fields& fields, VitConfig& config);
/// Reads `pos_embed_resize`, an argument of vitrail's own.
void read_position_resize(io::Fields& fields, VitConfig& config);

/// Reads `pos_embed`, by default timm's learn: '', none, learn or the name of another positional code
/// (docs/positions.md), and what belongs to it (`gsd`, `fourier_sigma`). It takes the place of all positions that
/// `config` has.
void read_positions(io::Fields& fields, VitConfig& config);

}  // namespace vitrail::models
