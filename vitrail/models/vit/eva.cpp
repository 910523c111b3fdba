// EVA-02 (Fang et al. 2023), Vision Transformers with rotary positions (Heo et al. 2024), DINOv3 (Siméoni et al. 2025)
// and the other models that timm builds with its class Eva: a VisionTransformer with rotary positions, gated Mlps and
// norms inside the blocks.
#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/vit/families.h"
#include "vitrail/models/vit/huggingface_vit.h"
#include "vitrail/models/vit/vit_config.h"

namespace vitrail::models {
namespace {

using io::Fields;

// A gated Mlp is a swiglu or a glu layer, depending on whether its hidden units are normalized or aligned.
void read_mlp(Fields& f, VitConfig& c) {
  c.scale_mlp_norm = f.get<bool>("scale_mlp", false);
  const auto align = f.get<std::int64_t>("swiglu_align_to", 0, {0, 1 << 16});
  if (!f.get<bool>("swiglu_mlp", false)) {
    return;
  }
  c.act_layer = ops::Activation::silu;
  c.mlp_hidden = static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio);
  if (c.scale_mlp_norm || (align > 0 && !c.post_norm)) {
    c.mlp_layer = nn::MlpKind::swiglu;
    c.mlp_hidden += align > 0 ? (align - c.mlp_hidden % align) % align : 0;
  } else {
    c.mlp_layer = nn::MlpKind::glu;
    c.mlp_hidden *= 2;
  }
  check(c.mlp_hidden > 0, "embed_dim {} with mlp_ratio {} leaves no hidden unit", c.embed_dim, c.mlp_ratio);
}

std::optional<nn::RotaryPositions::Config> read_rope(Fields& f) {
  const bool wanted = f.get<bool>("use_rot_pos_emb", false);
  const std::string type = f.choice("rope_type", "cat", {"cat", "mixed", "dinov3"});
  const bool mixed = type == "mixed";
  nn::RotaryPositions::Config rope;
  rope.axial.centered = type == "dinov3";
  rope.kind = mixed ? nn::RotaryPositions::Kind::mixed : nn::RotaryPositions::Kind::axial;
  rope.axial.temperature = f.get<double>("rope_temperature", 10000, {1e-6, 1e12});
  rope.axial.offset = f.get<double>("rope_grid_offset", 0, {-1e6, 1e6});
  rope.axial.columns_first = f.choice("rope_grid_indexing", "ij", {"ij", "xy"}) == "xy";
  if (f.get<bool>("rope_rotate_half", false)) {
    check(!mixed, "{}: mixed rotary positions turn adjacent elements: rope_rotate_half must be false", f.source());
    rope.pairs = ops::RotaryPairs::halves;
  }
  if (f.kind("ref_feat_shape") != io::Kind::absent && f.kind("ref_feat_shape") != io::Kind::null) {
    const nn::Size2 reference = read_size(f, "ref_feat_shape", {});
    rope.axial.reference = rope.axial.centered ? std::nullopt : std::optional(reference);  // as in timm
  }
  return wanted ? std::optional(rope) : std::nullopt;
}

VitConfig read_eva(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  VitConfig c;
  c.kind = VitConfig::Kind::eva;
  c.fix_init = true;
  read_shared(f, c);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "avgmax", "max", "token", "map"}));
  c.pool_include_prefix = c.global_pool == nn::Pool::map;  // only attention pooling includes the prefix
  c.qkv_fused = f.get<bool>("qkv_fused", true);
  c.qk_norm = f.get<bool>("qk_norm", false);
  c.scale_attn_norm = f.get<bool>("scale_attn_inner", false);
  c.k_bias = f.choice("attn_type", "eva", {"eva", "rope"}) == "rope";
  c.pos_drop_rate = f.get<double>("pos_drop_rate", 0, {0, 1});
  c.init_values = as_float(f.optional<double>("init_values"));
  c.class_token = f.get<bool>("class_token", true);
  c.reg_tokens = f.get<std::int64_t>("num_reg_tokens", 0, {0, 4096});
  c.no_embed_class = f.get<bool>("no_embed_class", false);
  c.pos_embed = f.get<bool>("use_abs_pos_emb", true) ? VitConfig::Positions::learned : VitConfig::Positions::none;
  c.rope = read_rope(f);
  if (f.kind("pos_embed") != io::Kind::absent) {
    read_positions(f, c);
  }
  c.post_norm = f.get<bool>("use_post_norm", false);
  if (c.post_norm) {
    check(!c.qk_norm, "{}: qk_norm cannot be had with use_post_norm", source);
    c.init_values.reset();  // timm's EvaBlockPostNorm has no layer scale
  }
  read_mlp(f, c);
  c.pre_norm = f.get<bool>("use_pre_transformer_norm", false);
  const bool fc_norm = f.optional<bool>("use_fc_norm").value_or(c.global_pool == nn::Pool::avg);
  const bool norm = f.optional<bool>("use_post_transformer_norm").value_or(!fc_norm);
  c.fc_norm = fc_norm;
  c.final_norm = norm || fc_norm;
  c.both_norms = norm && fc_norm;
  c.attn_pool_num_heads = f.optional<std::int64_t>("attn_pool_num_heads", {0, largest_size}).value_or(0);
  c.attn_pool_mlp_ratio = f.optional<double>("attn_pool_mlp_ratio", {0, 1e3}).value_or(0);
  c.dynamic_img_size = f.get<bool>("dynamic_img_size", false);
  c.dynamic_img_crop = f.get<bool>("dynamic_img_crop", false);
  c.dynamic_img_pad = f.get<bool>("dynamic_img_pad", false);
  c.head_init_scale = f.get<double>("head_init_scale", 0.001, {0, 1e6});
  f.finish();
  return c;
}

constexpr HubKind eva_hub_kinds[] = {{"dinov3_vit", read_hub_dinov3}};

}  // namespace

constinit const Family eva_family = {.name = "eva",
                                     .table = eva_table,
                                     .build = build<VisionTransformer, read_eva>,
                                     .first_conv = "patch_embed.proj",
                                     .fc_norm = "use_fc_norm",
                                     .beyond_timm = "pos_embed gsd fourier_sigma dynamic_img_crop",
                                     .hub_kinds = eva_hub_kinds,
                                     .hub_form = vit_hub_form};

}  // namespace vitrail::models
