// Parameters named in short, as a person writes them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "vitrail/models/model.h"

namespace vitrail::train {

// The full names of the parameters that `patterns` mean; buffers are none:
//
//   patch_embed   all whose names begin with these parts: patch_embed.proj.weight …
//   blocks.1      blocks.1.norm1.weight … but not blocks.10.norm1.weight
//   blocks.0-5    a range of numbers in place of one
//   *.norm1       * stands for any text inside a part, or for a whole part
//   layer:0-6     timm's layers, those of layer-wise decay: 0 the embedding, depth() + 1 the head
//
// Error, naming `flag`, for a pattern that no parameter fits.
std::set<std::string> parameters_named(const models::ImageModel& net, const std::vector<std::string>& patterns,
                                       const std::string& flag);

}  // namespace vitrail::train
