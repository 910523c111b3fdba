/// \file
/// The image preparation of transformers: preprocessor_config.json.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/image_model.h"

namespace vitrail::models {

/// Reads the folder's preprocessor_config.json and overrides `pretrained` by it; does nothing if there is no such file.
/// Keys that are missing have the defaults of transformers' class of that name, if vitrail knows it. crop_pct and
/// crop_mode become those of timm's that are nearest to the processor. Throws Error for a preparation that vitrail does
/// not have.
void read_preprocessor(const std::filesystem::path& folder, PretrainedConfig& pretrained);
/// Throws Error if the images that the folder's preprocessor_config.json makes are not of the `size` that its model
/// takes, as transformers' ViT, DeiT and CLIP do; its BEiT resizes the tables of its positions for them.
void check_prepared_size(const std::filesystem::path& folder, const PretrainedConfig& pretrained, nn::Size2 size);
/// The image processor of this preparation: its own, or the one that is nearest to timm's crop_pct and crop_mode. The
/// two differ by a pixel where the margin of the crop is odd, and take different parts of images where the crop is no
/// square, of which timm resizes each image to fill the crop, and transformers its shorter side alone. Throws Error for
/// the crop_mode "border", which transformers does not have.
data::ImageProcessor processor_of(const PretrainedConfig& pretrained);
/// The preprocessor_config.json of this preparation. Throws Error if transformers does not have it.
nlohmann::ordered_json preprocessor_json(const PretrainedConfig& pretrained);

/// A processor as JSON, for a folder in timm's layout: {"resize", "size", "crop_size"}.
nlohmann::ordered_json processor_json(const data::ImageProcessor& processor);
/// The processor that processor_json() wrote; errors about it name `source`.
data::ImageProcessor read_processor(const nlohmann::json& json, const std::string& source);

}  // namespace vitrail::models
