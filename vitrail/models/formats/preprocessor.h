/// \file
/// The image preparation of transformers: preprocessor_config.json.
#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/image_model.h"

namespace vitrail::models {

/// Reads the folder's preprocessor_config.json and overrides `pretrained` by it; does nothing if there is no such file.
/// Throws Error for a preparation that vitrail does not have.
void read_preprocessor(const std::filesystem::path& folder, PretrainedConfig& pretrained);
/// The preprocessor_config.json of this preparation. Throws Error if transformers does not have it.
nlohmann::ordered_json preprocessor_json(const PretrainedConfig& pretrained);

}  // namespace vitrail::models
