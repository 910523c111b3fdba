// Model folders in the layout of Hugging Face's transformers: config.json with a "model_type",
// preprocessor_config.json, and model.safetensors with transformers' own names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/vit.h"

namespace vitrail::models {

// A kind of model of transformers', by the "model_type" of its config.json.
struct HubFamily {
  std::string_view model_type;
  // The architecture and its arguments from the config, and the names of the tensors.
  void (*read)(io::Fields& config, FolderConfig& folder);
};
const std::vector<HubFamily>& hub_families();

// Whether a config.json is of this layout: it has a "model_type".
bool is_hub_config(const nlohmann::json& config);
// What the folder's config.json (`config`) and preprocessor_config.json say. Error for a model_type, or a kind of
// model, that vitrail does not have.
FolderConfig read_hub_folder(const nlohmann::json& config, const std::filesystem::path& folder);

// The files of a folder that transformers' from_pretrained() reads. Error if transformers has no such model.
struct HubFiles {
  nlohmann::ordered_json config;
  nlohmann::ordered_json preprocessor;
  io::NamedTensors tensors;
};
HubFiles hub_files(const Model& model);

// Writes them in place of what is in `folder`.
void write_hub_files(const HubFiles& files, const std::filesystem::path& folder);

// What masked autoencoders share with these.
//
// Width, depth, heads, Mlp, picture, activation and norms of a plain Vision Transformer, by transformers' keys.
void read_hub_encoder(io::Fields& config, VitConfig& encoder);
nlohmann::ordered_json hub_encoder_json(const VitConfig& encoder);
// Why transformers' ViTModel is not this encoder: "it has register tokens"; "" if it is.
std::string not_plain(const VitConfig& encoder);
void read_preprocessor(const std::filesystem::path& folder, PretrainedConfig& pretrained);
nlohmann::ordered_json preprocessor_json(const PretrainedConfig& pretrained);

}  // namespace vitrail::models
