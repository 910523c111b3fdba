/// \file
/// Models of images and texts in folders of transformers' CLIPModel and SiglipModel.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "vitrail/io/safetensors.h"
#include "vitrail/models/joint/clip.h"

namespace vitrail::models {

/// A model of images and texts with all that its folder says about it.
struct JointModel {
  std::unique_ptr<ClipModel> net;
  PretrainedConfig pretrained;  ///< how images are prepared
  std::string config = "{}";    ///< config.json as text, also with fields that are of no use here
};

/// Whether `folder` has a config.json whose "model_type" is "clip" or "siglip".
bool is_clip_folder(const std::filesystem::path& folder);
/// Loads the folder that save_pretrained() of transformers' CLIPModel or SiglipModel wrote: config.json,
/// model.safetensors and, if it is there, preprocessor_config.json. Throws Error if the folder cannot be read, or if a
/// tower does not fit the config.
JointModel load_clip(const std::filesystem::path& folder, nn::Fill fill = nn::Fill::leave);
/// Creates a model of the fields of such a config.json, a JSON object, with weights as training begins with. Errors
/// name `source`.
JointModel create_clip(const std::string& config, const std::string& source, const nn::StoreOptions& store = {});
/// Writes the files that load_clip() and transformers' from_pretrained() read into `folder`, which exists, weights in
/// `dtype`: f32 or bf16.
void write_clip(const JointModel& model, const std::filesystem::path& folder, DType dtype = DType::f32);

/// What transformers' checkpoint has, of `value` of each parameter.
io::NamedTensors clip_tensors(const ClipModel& model, const std::function<Tensor(const nn::Parameter&)>& value);

}  // namespace vitrail::models
