/// \file
/// Short patterns for the names of parameters, as users write them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "vitrail/nn/network.h"

namespace vitrail::train {

/// The full names of the parameters that match one of `patterns`; buffers never match:
///
/// ```text
/// patch_embed   all whose names begin with these parts: patch_embed.proj.weight …
/// blocks.1      blocks.1.norm1.weight … but not blocks.10.norm1.weight
/// blocks.0-5    a range of numbers in place of one
/// *.norm1       * stands for any text inside a part, or, alone, for one part or more
/// layer:0-6     the layers of timm's layer-wise decay: 0 is the embedding, depth() + 1 the head
/// ```
///
/// Throws Error, naming `flag`, if no parameter matches a pattern.
std::set<std::string> parameters_named(const nn::Network& net, const std::vector<std::string>& patterns,
                                       const std::string& flag);

/// Excludes the parameters that match `patterns` from training (--freeze). Throws Error if nothing is left to train.
void freeze(nn::Network& network, const std::vector<std::string>& patterns);

}  // namespace vitrail::train
