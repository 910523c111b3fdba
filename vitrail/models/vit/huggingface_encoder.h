/// \file
/// What the readers of transformers' Vision Transformers have in common.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::models {

/// The mlp_ratio that gives exactly `hidden` units by timm's truncation int(dim · ratio).
double mlp_ratio_for(std::int64_t dim, std::int64_t hidden);

/// timm's name for a model of this width if the registry has one, otherwise `otherwise`; {} in the pattern is its size.
std::string nearest_architecture(const std::string& pattern, std::int64_t width, const std::string& otherwise);
/// The same with patches of this size if there is one, or of another; the second {} is the size of a patch.
std::string nearest_plain_architecture(const VitConfig& config, const std::string& pattern,
                                       const std::string& otherwise);

/// Sets timm's arguments for the sizes, Mlp and norms of an encoder.
void set_hub_encoder(Arguments& arguments, const VitConfig& config, const std::string& activation);
/// Takes over the size of images.
void read_hub_image_size(const VitConfig& config, FolderConfig& folder);

}  // namespace vitrail::models
