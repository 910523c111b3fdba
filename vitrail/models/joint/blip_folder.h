/// \file
/// Models that answer questions about pictures, or say what is in them, in folders of transformers' BLIP.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/image_model.h"
#include "vitrail/models/joint/blip.h"

namespace vitrail::models {

/// A Blip with all that its folder says about it, but for the tokenizer, which lies beside.
struct BlipModel {
  std::unique_ptr<Blip> net;
  PretrainedConfig pretrained;  ///< how images are prepared: BlipImageProcessor
  std::string config = "{}";    ///< config.json as text, also with fields that are of no use here
};

/// Whether `folder` has a config.json whose "model_type" is "blip".
bool is_blip_folder(const std::filesystem::path& folder);
/// Whether it is one of a BlipForConditionalGeneration, which says what is in images.
bool is_blip_captioner_folder(const std::filesystem::path& folder);
/// Loads the folder that save_pretrained() of transformers' BlipForQuestionAnswering or BlipForConditionalGeneration
/// wrote: config.json, model.safetensors and, if it is there, preprocessor_config.json. Throws Error if the folder
/// cannot be read, or is of another class.
BlipModel load_blip(const std::filesystem::path& folder, nn::Fill fill = nn::Fill::leave);
/// Creates a model of the fields of such a config.json, a JSON object, with weights as training begins with. Errors
/// name `source`.
BlipModel create_blip(const std::string& config, const std::string& source, const nn::StoreOptions& store = {});
/// Writes the files that load_blip() and transformers' from_pretrained() read into `folder`, which exists, weights in
/// `dtype`: f32 or bf16.
void write_blip(const BlipModel& model, const std::filesystem::path& folder, DType dtype = DType::f32);

/// What transformers' checkpoint has, of `value` of each parameter.
io::NamedTensors blip_tensors(const Blip& model, const std::function<Tensor(const nn::Parameter&)>& value);

}  // namespace vitrail::models
