/// \file
/// Functions that create, load and save image models; architectures() of base/registry.h lists their names.
/// without_head() of features.h makes a model that gives features in place of logits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::models {

/// Creates a model by its name in timm ("vit_tiny_patch16_224"), initialized as timm does. The name may have one of
/// timm's tags ("vit_base_patch16_224.dino"), which then says how images are prepared. Throws Error, with similar
/// names, if there is no such model.
Model create_model(const std::string& name, const CreateOptions& options = {});
/// Creates a model like create_model(), but without memory for its parameters: it answers questions about names,
/// shapes, counts and FLOPs.
Model describe_model(const std::string& name, CreateOptions options = {});
/// Loads the model of a folder: `config.json` and weights (weights_in(): model.safetensors or others) in timm's hub
/// layout, or in the layout of Hugging Face's transformers (each family declares which of its models it reads). Options
/// override what the folder says: another number of classes gives a new head, another img_size resizes the position
/// embeddings. Throws Error if the folder cannot be read or does not fit.
Model load_model(const std::filesystem::path& folder, const CreateOptions& options = {});
/// Loads the model folder `name_or_folder` by load_model() if it is one, with or without timm's prefix `local-dir:`, or
/// if it is the name of a checkpoint that ships with the program (base/shipped.h); otherwise creates a model of this
/// name by create_model(). Throws Error if there is neither.
Model open_model(const std::string& name_or_folder, const CreateOptions& options = {});
/// Whether open_model() loads a folder, rather than creating a model whose weights are random.
bool names_folder(const std::string& name_or_folder);
/// The layouts that a model folder can have.
enum class Layout { timm, huggingface };
/// Writes the folder that load_model() reads, and that timm reads by `hf-hub:` or `local-dir:`, or transformers by
/// from_pretrained(). The folder is written completely or not at all. Throws Error if transformers has no such model. A
/// masked autoencoder (mae.h) is written in transformers' layout in any case. `dtype`, f32 or bf16, is that of weights
/// and statistics in the file; a file in bf16 has half the size, and is loaded into f32 again.
void save_model(const Model& model, const std::filesystem::path& folder, Layout layout = Layout::timm,
                DType dtype = DType::f32);

}  // namespace vitrail::models
