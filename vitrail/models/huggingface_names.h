// What transformers calls the tensors of timm's models, in its checkpoints. '~' is "vit.", "deit.", "dinov2." …
#pragma once

#include <span>

#include "vitrail/models/name_map.h"

namespace vitrail::models {

std::span<const NameRule> hub_vit_names();
std::span<const NameRule> hub_deit_names();
std::span<const NameRule> hub_deit_with_teacher_names();
std::span<const NameRule> hub_dinov2_names(bool registers, bool gated);
std::span<const NameRule> hub_beit_names();
std::span<const NameRule> hub_swin_names();
std::span<const NameRule> hub_swin_v2_names();
std::span<const NameRule> hub_mae_names();

}  // namespace vitrail::models
