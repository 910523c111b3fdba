/// \file
/// Vision Transformers in the layout of Hugging Face's transformers: ViT, DeiT, DINOv2, DINOv3, BEiT, ViTMAE, and the
/// vision towers of CLIP and SigLIP.
#pragma once

#include <span>
#include <string>

#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/vit/vit.h"

namespace vitrail::models {

/// The readers of configs, for HubKind.
void read_hub_vit(io::Fields& f, FolderConfig& folder);
void read_hub_vit_mae(io::Fields& f, FolderConfig& folder);  ///< the encoder, for fine-tuning; mae.h reads all of it
void read_hub_deit(io::Fields& f, FolderConfig& folder);
void read_hub_dinov2(io::Fields& f, FolderConfig& folder);
void read_hub_dinov2_with_registers(io::Fields& f, FolderConfig& folder);
void read_hub_dinov3(io::Fields& f, FolderConfig& folder);  ///< of the family `eva`
void read_hub_beit(io::Fields& f, FolderConfig& folder);
void read_hub_clip_vision(io::Fields& f, FolderConfig& folder);  ///< of a tower alone, and of a model with texts too
void read_hub_siglip_vision(io::Fields& f, FolderConfig& folder);
/// Family::hub_form of the families whose models are VisionTransformers.
HubForm vit_hub_form(const ImageModel& net);

/// Reads width, depth, heads, Mlp, image, activation and norms of a plain Vision Transformer, by transformers' keys.
void read_hub_encoder(io::Fields& config, VitConfig& encoder);
/// The config that read_hub_encoder() reads.
nlohmann::ordered_json hub_encoder_json(const VitConfig& encoder);
/// The reason why transformers' ViTModel cannot be this encoder ("it has register tokens"), or "" if it can.
std::string not_plain(const VitConfig& encoder);

/// The fields of one tower of a CLIPConfig or SiglipConfig, "vision_config" or "text_config". Where the older
/// `…_config_dict` is there too, transformers takes it, with the defaults of what it leaves out.
const nlohmann::json& hub_tower(io::Fields& config, const std::string& key);
/// The vision tower that a CLIPVisionConfig or SiglipVisionConfig describes, without a classifier.
VitConfig read_hub_tower(io::Fields& config, bool siglip);
/// The preparation of CLIPImageProcessor or SiglipImageProcessor, for images of the tower's size.
PretrainedConfig hub_tower_images(const VitConfig& tower, bool siglip);

/// What transformers calls the tensors of each kind. '~' stands for "vit.", "deit.", "dinov2." …
std::span<const NameRule> hub_vit_names();
std::span<const NameRule> hub_deit_names();
std::span<const NameRule> hub_deit_with_teacher_names();
std::span<const NameRule> hub_dinov2_names(bool registers, bool gated);
/// '~' stands for "model.", which its files do not have, but its class.
std::span<const NameRule> hub_dinov3_names();
std::span<const NameRule> hub_beit_names();
/// '~' stands for "vision_model.". The last lines, without it, leave out what a model with texts has further.
std::span<const NameRule> hub_clip_vision_names();
std::span<const NameRule> hub_mae_names();

}  // namespace vitrail::models
