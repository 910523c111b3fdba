/// \file
/// Networks that answer questions about pictures, by name and in folders.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/joint/vqa.h"

namespace vitrail::models {

/// A Vqa with all that its folder says about it, but for the tokenizer, which lies beside.
struct VqaModel {
  std::unique_ptr<Vqa> net;
  std::string name;                  ///< "vqa_small"
  std::vector<std::string> answers;  ///< what it can answer
  PretrainedConfig pretrained;       ///< how images are prepared
  std::string config = "{}";         ///< config.json as text
};

/// The names of new models: vqa_small (Kind::cross), vqa_joint, vqa_one, and the baselines vqa_question, vqa_picture,
/// vqa_cnn_lstm. vqa_joint has as many parameters as vqa_small.
std::vector<std::string> vqa_names();
/// Whether `name` is one of them.
bool is_vqa_name(const std::string& name);

/// Creates a model. `kwargs` is a JSON object of fields of config.json: img_size, channels, dim, num_heads, hidden,
/// vision_depth, depth, max_positions, attn_norm. Throws Error for an unknown name or field.
VqaModel create_vqa(const std::string& name, const std::string& kwargs, std::int64_t vocab_size,
                    const std::vector<std::string>& answers, float drop = 0, const nn::StoreOptions& store = {});

/// Whether `folder` has a config.json of such a model.
bool is_vqa_folder(const std::filesystem::path& folder);
/// Loads the folder that write_vqa() wrote, with this dropout, of which it says nothing. Throws Error if it cannot be
/// read.
VqaModel load_vqa(const std::filesystem::path& folder, nn::Fill fill = nn::Fill::leave, float drop = 0);
/// Loads such a folder with a vocabulary of at least its own size and with further answers behind its own: the rows
/// that it has nothing for are initialized as those of a new model.
VqaModel load_grown_vqa(const std::filesystem::path& folder, std::int64_t vocab_size,
                        const std::vector<std::string>& further_answers, float drop = 0,
                        const nn::StoreOptions& store = {});
/// Writes config.json and model.safetensors into `folder`, which exists, weights in `dtype`: f32 or bf16.
void write_vqa(const VqaModel& model, const std::filesystem::path& folder, DType dtype = DType::f32);

}  // namespace vitrail::models
