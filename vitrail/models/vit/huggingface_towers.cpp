// The vision towers of transformers' CLIP and SigLIP.
#include <optional>

#include "vitrail/models/vit/huggingface_encoder.h"
#include "vitrail/models/vit/huggingface_vit.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;

void read_clip_vision(io::Fields& f, FolderConfig& folder, bool siglip) {
  const bool whole = f.kind("vision_config") != io::Kind::absent || f.kind("vision_config_dict") != io::Kind::absent ||
                     f.kind("text_config") != io::Kind::absent;
  std::optional<io::Fields> tower;
  if (whole) {
    tower.emplace(hub_tower(f, "vision_config"), f.source() + ": 'vision_config'");
  }
  io::Fields& fields = whole ? *tower : f;
  VitConfig c = read_hub_tower(fields, siglip);
  c.pos_embed_resize = VitConfig::PositionResize::transformers;
  Arguments arguments(f, folder,
                      siglip ? nearest_plain_architecture(c, "vit_{}_patch{}_siglip_224", "vit_base_patch16_siglip_224")
                             : nearest_plain_architecture(c, "vit_{}_patch{}_clip_224", "vit_base_patch32_clip_224"));
  set_hub_encoder(arguments, c, timm_activation(fields, "hidden_act", siglip ? "gelu_pytorch_tanh" : "quick_gelu"));
  if (!siglip) {  // timm's has one of its own
    arguments.set("norm_layer", {"layernorm", shortest(c.norm_layer.eps)}, nullptr);
  }
  read_hub_image_size(c, folder);
  folder.num_classes = 0;
  folder.pretrained = hub_tower_images(c, siglip);
  folder.names = hub_clip_vision_names();
  folder.prefix = "vision_model.";
}

}  // namespace

void read_hub_clip_vision(io::Fields& f, FolderConfig& folder) { read_clip_vision(f, folder, false); }
void read_hub_siglip_vision(io::Fields& f, FolderConfig& folder) { read_clip_vision(f, folder, true); }

const Json& hub_tower(io::Fields& f, const std::string& key) {
  static const Json none = Json::object();
  for (const std::string& name : {key + "_dict", key}) {
    if (f.kind(name) != io::Kind::absent && f.kind(name) != io::Kind::null) {
      f.object(name);  // throws Error if it is none
      return f.raw(name);
    }
  }
  return none;
}

VitConfig read_hub_tower(io::Fields& f, bool siglip) {
  const nn::Size2 patch = siglip ? nn::Size2{16, 16} : nn::Size2{32, 32};
  VitConfig c;
  c.img_size = read_size(f, "image_size", {224, 224});
  c.patch_size = read_size(f, "patch_size", patch);
  c.in_chans = f.get<std::int64_t>("num_channels", 3, positive);
  c.num_classes = 0;
  c.embed_dim = f.get<std::int64_t>("hidden_size", 768, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, most_layers);
  c.num_heads = f.get<std::int64_t>("num_attention_heads", 12, positive);
  check(c.embed_dim % c.num_heads == 0, "{}: the width {} cannot be divided among {} heads", f.source(), c.embed_dim,
        c.num_heads);
  c.mlp_ratio = mlp_ratio_for(c.embed_dim, f.get<std::int64_t>("intermediate_size", 3072, positive));
  c.act_layer = ops::activation_named(timm_activation(f, "hidden_act", siglip ? "gelu_pytorch_tanh" : "quick_gelu"));
  c.norm_layer.eps = static_cast<float>(f.get<double>("layer_norm_eps", siglip ? 1e-6 : 1e-5, {0, 1}));
  c.attn_drop_rate = f.get<double>("attention_dropout", 0, {0, 1});
  if (siglip) {
    check(f.get<bool>("vision_use_head", true), "{}: without its head ('vision_use_head') the tower gives no vector",
          f.source());
    c.class_token = false;
    c.global_pool = nn::Pool::map;
  } else {
    c.pre_norm = true;
  }
  return c;
}

PretrainedConfig hub_tower_images(const VitConfig& tower, bool siglip) {
  PretrainedConfig p;
  p.channels = tower.in_chans;
  p.height = tower.img_size[0];
  p.width = tower.img_size[1];
  p.crop_pct = 1;
  p.mean = {0.48145466, 0.4578275, 0.40821073};
  p.std = {0.26862954, 0.26130258, 0.27577711};
  if (siglip) {
    p.crop_mode = "squash";
  }
  if (siglip || p.channels != 3) {
    p.mean.assign(static_cast<std::size_t>(p.channels), 0.5);
    p.std.assign(static_cast<std::size_t>(p.channels), 0.5);
  }
  return p;
}

}  // namespace vitrail::models
