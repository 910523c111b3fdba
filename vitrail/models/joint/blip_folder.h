/// \file
/// The folders of transformers' BLIP, of models that answer questions about pictures, or say what is in them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/image_model.h"
#include "vitrail/models/formats/name_map.h"
#include "vitrail/models/joint/blip.h"

namespace vitrail::models {

/// A Blip with all that its folder says about it, but for the tokenizer, which lies beside.
struct BlipModel {
  std::unique_ptr<Blip> net;
  PretrainedConfig pretrained;  ///< how images are prepared: BlipImageProcessor
  std::string config = "{}";    ///< config.json as text, also with fields that are of no use here
};

/// Whether `folder` has a config.json whose "model_type" is "blip", of a model that answers questions.
bool is_blip_folder(const std::filesystem::path& folder);
/// Loads the folder that save_pretrained() of transformers' BlipForQuestionAnswering wrote: config.json,
/// model.safetensors and, if it is there, preprocessor_config.json; with this dropout of the texts' states, or if it is
/// 0 with that of config.json. Throws Error if the folder cannot be read, or is of another class.
BlipModel load_blip(const std::filesystem::path& folder, nn::Fill fill = nn::Fill::leave, float drop = 0);
/// Creates a model of the fields of such a config.json, a JSON object, with weights as training begins with. Errors
/// name `source`.
BlipModel create_blip(const std::string& config, const std::string& source, const nn::StoreOptions& store = {});
/// Writes the files that load_blip() and transformers' from_pretrained() read into `folder`, which exists, weights in
/// `dtype`: f32 or bf16.
void write_blip(const BlipModel& model, const std::filesystem::path& folder, DType dtype = DType::f32);

/// transformers' classes of such folders.
inline constexpr const char* blip_answerer_class = "BlipForQuestionAnswering";
inline constexpr const char* blip_captioner_class = "BlipForConditionalGeneration";
/// The class of a folder of a BLIP; "" if it is none.
std::string blip_class_in(const std::filesystem::path& folder);

/// What the files of a folder say of a model.
struct BlipFiles {
  BlipConfig sizes;
  PretrainedConfig images;
  std::string config = "{}";
};
/// Reads config.json and preprocessor_config.json. Throws Error if they are of another class.
BlipFiles read_blip_folder(const std::filesystem::path& folder, const std::string& architecture);

/// The names of the parameters of a Blip, and of a BlipCaptioner, with those in transformers' files.
std::span<const NameRule> blip_names();
std::span<const NameRule> blip_captioner_names();
/// What transformers' checkpoint has, of `value` of each parameter.
io::NamedTensors blip_tensors(const nn::ParameterStore& parameters, std::span<const NameRule> names,
                              const std::function<Tensor(const nn::Parameter&)>& value);

/// What write_blip_folder() writes.
struct BlipContent {
  std::string config;
  std::string architecture;
  PretrainedConfig images;
  io::NamedTensors tensors;
  DType dtype = DType::f32;
};
/// Writes config.json, preprocessor_config.json and model.safetensors.
void write_blip_folder(const std::filesystem::path& folder, BlipContent content);

}  // namespace vitrail::models
