/// \file
/// The fields of a generation_config.json.
#pragma once

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace vitrail::models {

/// The fields of transformers' GenerationConfig that change what is generated, beside the tokens that begin, end and
/// fill up texts, each with the value that it has where nothing says it; null: none.
const std::vector<std::pair<const char*, nlohmann::json>>& generation_defaults();

}  // namespace vitrail::models
