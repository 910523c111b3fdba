// The Vision Transformers of transformers: ViT, DeiT, DINOv2 with and without registers, DINOv3 and BEiT.
#include "vitrail/models/vit/huggingface_vit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/vit/huggingface_encoder.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using ops::Activation;

std::int64_t hidden_of(const VitConfig& c) {
  return static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio);
}

// The number of hidden units of DINOv2's Mlp. A gated Mlp has two thirds of dim · ratio, rounded up to a multiple of 8,
// and that twice: for the gate and for the values that it multiplies.
std::int64_t dino_hidden(std::int64_t dim, double ratio, bool gated) {
  const auto hidden = static_cast<std::int64_t>(static_cast<double>(dim) * ratio);
  return gated ? 2 * ((static_cast<std::int64_t>(static_cast<double>(hidden) * 2 / 3) + 7) / 8 * 8) : hidden;
}

// Sets timm's arguments for what every encoder has.
void set_hub_sizes(Arguments& arguments, const VitConfig& c) {
  arguments.set("img_size", side(c.img_size), nullptr);
  arguments.set("patch_size", side(c.patch_size), 16);
  arguments.set("in_chans", c.in_chans, 3);
  arguments.set("embed_dim", c.embed_dim, 768);
  arguments.set("depth", c.depth, 12);
  arguments.set("num_heads", c.num_heads, 12);
  arguments.set("mlp_ratio", c.mlp_ratio, 4.0);
  arguments.set("qkv_bias", c.qkv_bias, true);
}

// The grid of patches that a table of positions is for.
nn::Size2 grid_of(const VitConfig& c) { return {c.img_size[0] / c.patch_size[0], c.img_size[1] / c.patch_size[1]}; }

// Reads the encoder that all kinds have in common.
VitConfig read_encoder(io::Fields& f) {
  VitConfig c;
  read_hub_encoder(f, c);
  c.pos_embed_resize = VitConfig::PositionResize::transformers;
  return c;
}

// transformers' Dinov2 resizes its positions on every image that is not a square, as those of a square grid, whatever
// the form of image_size is.
void take_grid_as_square(VitConfig& c, const std::string& source) {
  const nn::Size2 grid = grid_of(c);
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(grid[0] * grid[1]))));
  check(side * side == grid[0] * grid[1],
        "{}: transformers' Dinov2 takes its positions for those of a square grid, but 'image_size' {}x{} has {}x{} "
        "patches",
        source, c.img_size[0], c.img_size[1], grid[0], grid[1]);
  if (c.img_size[0] != c.img_size[1]) {
    c.img_size = {side * c.patch_size[0], side * c.patch_size[1]};
  }
}

void read_dino(io::Fields& f, FolderConfig& folder, bool registers) {
  VitConfig c = read_encoder(f);
  read_hub_image_size(c, folder);
  take_grid_as_square(c, f.source());
  if (registers) {  // it resizes with antialiasing, as timm does
    c.pos_embed_resize = VitConfig::PositionResize::timm;
  }
  const auto ratio = f.get<double>("mlp_ratio", 4, {1e-3, 1e3});
  const bool gated = f.get<bool>("use_swiglu_ffn", false);
  const std::string activation = gated ? "silu" : timm_activation(f);
  c.mlp_ratio = mlp_ratio_for(c.embed_dim, dino_hidden(c.embed_dim, ratio, gated));
  const std::string middle = registers ? "_reg4" : "";
  const std::string fallback = fmt::format("vit_{}_patch14{}_dinov2", gated ? "giant" : "base", middle);
  const std::string near =
      nearest_architecture(fmt::format("vit_{{}}_patch{}{}_dinov2", c.patch_size[0], middle), c.embed_dim, fallback);
  Arguments arguments(f, folder, near.starts_with("vit_giant") == gated ? near : fallback);
  set_hub_encoder(arguments, c, activation);
  if (const auto scale = f.get<double>("layerscale_value", 1.0, {0, 1e3}); scale > 0) {
    arguments.set("init_values", scale, nullptr);
  } else {
    fail("{}: 'layerscale_value' must be above 0, not {}", f.source(), scale);
  }
  if (registers) {
    arguments.set("reg_tokens", f.get<std::int64_t>("num_register_tokens", 4, {1, 4096}), 0);
  }
  arguments.set("dynamic_img_size", true, false);
  arguments.set("dynamic_img_crop", true, false);
  folder.fixed_input_size = false;
  if (read_classes(f, folder,
                   {registers ? "Dinov2WithRegistersForImageClassification" : "Dinov2ForImageClassification"},
                   {registers ? "Dinov2WithRegistersModel" : "Dinov2Model"})) {
    arguments.set("global_pool", "token_avg", "token");
  }
  take_pretrained(folder);
  folder.names = hub_dinov2_names(registers, gated);
  folder.prefix = registers ? "dinov2_with_registers." : "dinov2.";
}

// Pairs of a condition and the reason that it gives if it holds; first_reason() returns the first such reason, or "".
using Reasons = std::vector<std::pair<bool, std::string>>;
std::string first_reason(const Reasons& reasons) {
  const auto it = std::ranges::find(reasons, true, &Reasons::value_type::first);
  return it == reasons.end() ? "" : it->second;
}

HubForm dino_form(const VitConfig& c) {
  const nn::Size2 grid = grid_of(c);
  check(grid[0] == grid[1],
        "transformers' Dinov2 takes its positions for those of a square grid, and this model has {}x{} patches "
        "(img_size)",
        grid[0], grid[1]);
  const bool registers = c.reg_tokens > 0;
  const bool gated = c.mlp_layer == nn::MlpKind::glu;
  check(!registers || c.no_embed_class, "transformers' Dinov2 has no positions for register tokens (no_embed_class)");
  check(registers || !c.no_embed_class, "transformers' Dinov2 has a position for the class token (no_embed_class)");
  check(c.num_classes == 0 || c.global_pool == nn::Pool::token_avg,
        "transformers' Dinov2 classifies by the class token beside the mean of the patches, and this model by its "
        "global_pool '{}'",
        name_of(c.global_pool));
  check(c.num_classes > 0 || c.global_pool == nn::Pool::token || c.global_pool == nn::Pool::token_avg,
        "transformers' Dinov2 has no global_pool '{}'", name_of(c.global_pool));
  HubForm form;
  form.model_type = registers ? "dinov2_with_registers" : "dinov2";
  const std::string start = registers ? "Dinov2WithRegisters" : "Dinov2";
  form.architecture = start + (c.num_classes > 0 ? "ForImageClassification" : "Model");
  form.names = hub_dinov2_names(registers, gated);
  form.prefix = form.model_type + ".";
  check(!gated || c.act_layer == Activation::silu, "transformers' gated Mlp has SiLU");
  std::int64_t ratio = 1;
  while (ratio < 64 && dino_hidden(c.embed_dim, static_cast<double>(ratio), gated) != hidden_of(c)) {
    ++ratio;
  }
  check(ratio < 64, "transformers' Dinov2 has a whole mlp_ratio, and none gives {} hidden units at the width {}",
        hidden_of(c), c.embed_dim);
  form.config = hub_encoder_json(c);
  form.config["mlp_ratio"] = ratio;
  if (gated) {
    form.config["hidden_act"] = "gelu";  // what the configs of gated models say, although the gate's SiLU replaces it
  }
  form.config["use_swiglu_ffn"] = gated;
  form.config["layerscale_value"] = shortest(*c.init_values);
  if (registers) {
    form.config["num_register_tokens"] = c.reg_tokens;
  }
  form.zeros = {{form.prefix + "embeddings.mask_token", {1, c.embed_dim}}};
  return form;
}

HubForm dinov3_form(const VitConfig& c) {
  const Reasons differences = {
      {c.num_classes > 0, "it has a classifier"},
      {c.global_pool != nn::Pool::token,
       fmt::format("it pools by '{}', and not by the class token (global_pool=token)", name_of(c.global_pool))},
      {!c.class_token, "it has no class token"},
      {c.pos_embed != VitConfig::Positions::none || c.rel_pos_type.has_value() || c.alibi.has_value() ||
           c.rope->pairs != ops::RotaryPairs::halves || c.rope->axial.offset != 0,
       "it has other positions"},
      {!c.init_values, "it has no layer scales (init_values)"},
      {c.qk_norm || c.scale_attn_norm || c.scale_mlp_norm, "it has norms inside of attention or Mlp"},
      {c.pre_norm || c.post_norm || c.both_norms || c.fc_norm.value_or(false) || !c.final_norm,
       "its norms are elsewhere"},
      {c.mlp_layer == nn::MlpKind::glu, "gate and values of its Mlp are one product (swiglu_align_to)"},
      {c.norm_layer.kind != nn::NormKind::layer, "its norms are not LayerNorm (norm_layer)"},
      {c.dynamic_img_pad, "it fills images up to whole patches (dynamic_img_pad)"}};
  const std::string other = first_reason(differences);
  check(other.empty(), "transformers has no such DINOv3: {}", other);
  const bool gated = c.mlp_layer == nn::MlpKind::swiglu;
  HubForm form;
  form.model_type = "dinov3_vit";
  form.architecture = "DINOv3ViTModel";
  form.names = hub_dinov3_names();
  form.prefix = "model.";
  form.config = hub_encoder_json(c);
  for (const char* key : {"qkv_bias", "hidden_dropout_prob", "attention_probs_dropout_prob"}) {
    form.config.erase(key);
  }
  form.config["intermediate_size"] = c.mlp_hidden > 0 ? c.mlp_hidden : hidden_of(c);
  form.config["use_gated_mlp"] = gated;
  form.config["query_bias"] = c.qkv_bias;
  form.config["key_bias"] = c.qkv_bias && c.k_bias;
  form.config["value_bias"] = c.qkv_bias;
  form.config["layerscale_value"] = shortest(*c.init_values);
  form.config["num_register_tokens"] = c.reg_tokens;
  form.config["rope_theta"] = c.rope->axial.temperature;
  form.zeros = {{"embeddings.mask_token", {1, 1, c.embed_dim}}};
  if (c.reg_tokens == 0) {
    form.zeros.emplace_back("embeddings.register_tokens", Shape{1, 0, c.embed_dim});
  }
  return form;
}

HubForm beit_form(const VitConfig& c) {
  const Reasons differences = {
      {!c.qkv_bias, "its queries and values have no bias (qkv_bias)"},
      {c.mlp_layer != nn::MlpKind::mlp, "its Mlp is gated (swiglu_mlp)"},
      {c.alibi.has_value() || c.rope.has_value() ||
           c.rel_pos_type.value_or(nn::RelPos::Kind::bias) != nn::RelPos::Kind::bias,
       "it has other positions (pos_embed)"},
      {c.scale_mlp_norm, "it has a norm inside of its Mlp (scale_mlp)"},
      {c.norm_layer.kind != nn::NormKind::layer, "its norms are not LayerNorm (norm_layer)"},
      {c.fc_norm.value_or(false) != (c.global_pool == nn::Pool::avg) || c.global_pool == nn::Pool::none,
       "it has a norm behind the pooling if, and only if, it takes the mean of the patches (use_fc_norm, "
       "global_pool)"}};
  const std::string other = first_reason(differences);
  check(other.empty(), "transformers has no such BEiT: {}", other);
  HubForm form;
  form.model_type = "beit";
  form.architecture = c.num_classes > 0 ? "BeitForImageClassification" : "BeitModel";
  form.names = hub_beit_names();
  form.prefix = "beit.";
  form.config = hub_encoder_json(c);
  form.config.erase("qkv_bias");
  form.config["intermediate_size"] = hidden_of(c);
  form.config["drop_path_rate"] = c.drop_path_rate;
  form.config["use_mask_token"] = false;
  form.config["use_absolute_position_embeddings"] = c.pos_embed != VitConfig::Positions::none;
  form.config["use_relative_position_bias"] = c.rel_pos_type.has_value() && (!c.shared_rel_pos || c.both_rel_pos);
  form.config["use_shared_relative_position_bias"] = c.shared_rel_pos;
  form.config["use_mean_pooling"] = c.global_pool == nn::Pool::avg;
  form.config["layer_scale_init_value"] = shortest(c.init_values.value_or(0));
  return form;
}

}  // namespace

double mlp_ratio_for(std::int64_t dim, std::int64_t hidden) {
  double ratio = static_cast<double>(hidden) / static_cast<double>(dim);
  while (static_cast<std::int64_t>(static_cast<double>(dim) * ratio) < hidden) {
    ratio = std::nextafter(ratio, 1e9);
  }
  return ratio;
}

std::string nearest_architecture(const std::string& pattern, std::int64_t width, const std::string& otherwise) {
  static const std::map<std::int64_t, std::string> sizes = {{192, "tiny"},   {384, "small"}, {768, "base"},
                                                            {1024, "large"}, {1280, "huge"}, {1536, "giant"}};
  const auto size = sizes.find(width);
  if (size == sizes.end()) {
    return otherwise;
  }
  std::string name = fmt::format(fmt::runtime(pattern), size->second);
  const bool known = std::ranges::find(architectures(), name, &Architecture::name) != architectures().end();
  return known ? name : otherwise;
}

void set_hub_encoder(Arguments& arguments, const VitConfig& c, const std::string& activation) {
  set_hub_sizes(arguments, c);
  arguments.set("act_layer", activation, "gelu");
  arguments.set("norm_layer", norm_argument(c.norm_layer.eps), nullptr);
  const bool as_timm = c.pos_embed_resize == VitConfig::PositionResize::timm;
  arguments.set("pos_embed_resize", as_timm ? "timm" : "transformers", "timm");
}

void read_hub_image_size(const VitConfig& c, FolderConfig& folder) {
  folder.input_size = {c.in_chans, c.img_size[0], c.img_size[1]};
}

std::string nearest_plain_architecture(const VitConfig& c, const std::string& pattern, const std::string& otherwise) {
  std::string name = otherwise;
  for (const std::int64_t patch : {std::int64_t{14}, std::int64_t{16}, c.patch_size[0]}) {
    name = nearest_architecture(fmt::format(fmt::runtime(pattern), "{}", patch), c.embed_dim, name);
  }
  return name;
}

void read_hub_vit(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  Arguments arguments(f, folder, nearest_plain_architecture(c, "vit_{}_patch{}_224", "vit_base_patch16_224"));
  set_hub_encoder(arguments, c, timm_activation(f));
  read_hub_image_size(c, folder);
  read_classes(f, folder, {"ViTForImageClassification"}, {"ViTModel", "ViTForMaskedImageModeling"});
  folder.pretrained.crop_mode = "squash";  // ViTImageProcessor's default; preprocessor_config.json overrides it
  folder.pretrained.crop_pct = 1;
  folder.pretrained.interpolation = "bilinear";
  folder.names = hub_vit_names();
  folder.prefix = "vit.";
}

// The encoder of a masked autoencoder only, for fine-tuning; mae.h reads all of it.
void read_hub_vit_mae(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  Arguments arguments(f, folder, nearest_plain_architecture(c, "vit_{}_patch{}_224", "vit_base_patch16_224"));
  set_hub_encoder(arguments, c, timm_activation(f));
  read_hub_image_size(c, folder);
  read_classes(f, folder, {}, {"ViTMAEForPreTraining", "ViTMAEModel"});
  const PretrainedConfig imagenet = pretrained_of(find_architecture("deit_base_patch16_224"), "");
  folder.pretrained.mean = imagenet.mean;
  folder.pretrained.std = imagenet.std;
  folder.names = hub_vit_names();
  folder.prefix = "vit.";
}

void read_hub_deit(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  const std::string teacher = "DeiTForImageClassificationWithTeacher";
  const bool classifies =
      read_classes(f, folder, {"DeiTForImageClassification", teacher}, {"DeiTModel", "DeiTForMaskedImageModeling"});
  const bool distilled = classifies && f.get<std::vector<std::string>>("architectures").front() == teacher;
  Arguments arguments(
      f, folder,
      distilled ? nearest_plain_architecture(c, "deit_{}_distilled_patch{}_224", "deit_base_distilled_patch16_224")
                : nearest_plain_architecture(c, "deit_{}_patch{}_224", "deit_base_patch16_224"));
  set_hub_encoder(arguments, c, timm_activation(f));
  if (!distilled) {  // the model has the distillation token, but no head that reads it
    arguments.set("reg_tokens", 1, 0);
  }
  read_hub_image_size(c, folder);
  take_pretrained(folder);
  folder.pretrained.crop_mode = "squash";
  folder.pretrained.crop_pct = 0.875;
  folder.names = distilled ? hub_deit_with_teacher_names() : hub_deit_names();
  folder.prefix = "deit.";
}

void read_hub_dinov2(io::Fields& f, FolderConfig& folder) { read_dino(f, folder, false); }
void read_hub_dinov2_with_registers(io::Fields& f, FolderConfig& folder) { read_dino(f, folder, true); }

void read_hub_dinov3(io::Fields& f, FolderConfig& folder) {
  VitConfig c;
  read_hub_encoder(f, c);
  c.embed_dim = f.get<std::int64_t>("hidden_size", 384, positive);
  c.num_heads = f.get<std::int64_t>("num_attention_heads", 6, positive);
  c.mlp_ratio = mlp_ratio_for(c.embed_dim, f.get<std::int64_t>("intermediate_size", 1536, positive));
  c.norm_layer.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-5, {1e-30, 1}));
  c.qkv_bias = f.get<bool>("query_bias", true);
  const bool key_bias = f.get<bool>("key_bias", false);
  check(c.qkv_bias == f.get<bool>("value_bias", true) && (c.qkv_bias || !key_bias),
        "{}: queries and values have a bias, with or without the keys, or none of them has ('query_bias', 'key_bias', "
        "'value_bias')",
        f.source());
  check(f.get<bool>("proj_bias", true) && f.get<bool>("mlp_bias", true),
        "{}: projections and Mlps have biases here ('proj_bias', 'mlp_bias')", f.source());
  const bool gated = f.get<bool>("use_gated_mlp", false);
  const std::string activation = timm_activation(f);
  check(!gated || activation == "silu", "{}: the gate of an Mlp is 'silu' here, not 'hidden_act' '{}'", f.source(),
        activation);
  const std::string end = fmt::format("patch{}_dinov3{}", c.patch_size[0], c.qkv_bias ? "_qkvb" : "");
  const std::string fallback = gated ? "vit_small_plus_patch16_dinov3_qkvb" : "vit_small_patch16_dinov3_qkvb";
  Arguments arguments(f, folder,
                      nearest_architecture((gated ? "vit_{}_plus_" : "vit_{}_") + end, c.embed_dim, fallback));
  set_hub_sizes(arguments, c);
  arguments.set("attn_type", key_bias ? "rope" : "eva", "eva");
  arguments.set("swiglu_mlp", gated, false);
  if (gated) {
    const auto hidden = static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio);
    arguments.set("swiglu_align_to", hidden % 8 == 0 ? 8 : 1, 0);
  } else {
    check(activation == "gelu", "{}: the Mlp of a DINOv3 without a gate has 'gelu' here, not 'hidden_act' '{}'",
          f.source(), activation);
  }
  arguments.set("norm_layer", {"layernorm", shortest(c.norm_layer.eps)}, nullptr);  // timm's has one of its own
  const auto scale = f.get<double>("layerscale_value", 1.0, {0, 1e3});
  check(scale > 0, "{}: 'layerscale_value' must be above 0, not {}", f.source(), scale);
  arguments.set("init_values", scale, nullptr);
  arguments.set("num_reg_tokens", f.get<std::int64_t>("num_register_tokens", 0, {0, 4096}), 0);
  arguments.set("rope_temperature", f.get<double>("rope_theta", 100, {1e-6, 1e12}), 10000.0);
  arguments.set("global_pool", "token", "avg");
  arguments.set("dynamic_img_crop", true, false);
  folder.num_classes = 0;
  read_hub_image_size(c, folder);
  folder.fixed_input_size = false;
  take_pretrained(folder);
  folder.names = hub_dinov3_names();
  folder.prefix = "model.";
}

void read_hub_beit(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  check(f.get<std::string>("hidden_act", "gelu") == "gelu", "{}: 'hidden_act' must be 'gelu' for BEiT", f.source());
  Arguments arguments(f, folder, nearest_plain_architecture(c, "beit_{}_patch{}_224", "beit_base_patch16_224"));
  set_hub_encoder(arguments, c, "gelu");
  arguments.set("use_abs_pos_emb", f.get<bool>("use_absolute_position_embeddings", false), true);
  arguments.set("use_rel_pos_bias", f.get<bool>("use_relative_position_bias", false), false);
  arguments.set("use_shared_rel_pos_bias", f.get<bool>("use_shared_relative_position_bias", false), false);
  arguments.set("global_pool", f.get<bool>("use_mean_pooling", true) ? "avg" : "token", "avg");
  arguments.set("init_values", f.get<double>("layer_scale_init_value", 0.1, {0, 1e3}), nullptr);  // 0: no layer scales
  arguments.set("drop_path_rate", f.optional<double>("drop_path_rate", {0, 0.99}).value_or(0.1), 0.0);
  read_hub_image_size(c, folder);
  read_classes(f, folder, {"BeitForImageClassification"}, {"BeitModel"});
  take_pretrained(folder);
  folder.names = hub_beit_names();
  folder.prefix = "beit.";
}

HubForm vit_hub_form(const ImageModel& net) {
  const VitConfig& c = known_body<VisionTransformer>(net).config();
  if (c.kind == VitConfig::Kind::beit) {
    return beit_form(c);
  }
  if (c.kind == VitConfig::Kind::eva && c.rope && c.rope->axial.centered) {
    return dinov3_form(c);
  }
  const std::string other = [&] {
    VitConfig plain = c;  // without the properties in which the kinds below differ
    plain.reg_tokens = 0;
    plain.distilled = false;
    plain.init_values.reset();
    plain.no_embed_class = false;
    plain.mlp_layer = nn::MlpKind::mlp;
    return not_plain(plain);
  }();
  check(other.empty(), "transformers has no such model: {}", other);
  if (c.init_values && *c.init_values != 0) {
    return dino_form(c);
  }
  check(c.mlp_layer == nn::MlpKind::mlp && !c.no_embed_class && c.reg_tokens <= 1,
        "transformers has no such model: only its Dinov2, which has layer scales (init_values), has a gated Mlp, "
        "register "
        "tokens or no position for the class token");
  check(c.global_pool == nn::Pool::token,
        "transformers' Vision Transformers read the class token, and this model has "
        "global_pool '{}'",
        name_of(c.global_pool));
  HubForm form;
  const bool deit = c.distilled || c.reg_tokens == 1;
  form.model_type = deit ? "deit" : "vit";
  form.prefix = form.model_type + ".";
  form.names = c.distilled ? hub_deit_with_teacher_names() : deit ? hub_deit_names() : hub_vit_names();
  const std::string start = deit ? "DeiT" : "ViT";
  check(!c.distilled || c.num_classes > 0, "transformers has no distilled model without classes");
  form.architecture = start + (c.distilled         ? "ForImageClassificationWithTeacher"
                               : c.num_classes > 0 ? "ForImageClassification"
                                                   : "Model");
  form.config = hub_encoder_json(c);
  form.config["intermediate_size"] = hidden_of(c);
  return form;
}

void read_hub_encoder(io::Fields& f, VitConfig& c) {
  c.embed_dim = f.get<std::int64_t>("hidden_size", 768, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, {0, 4096});
  c.num_heads = f.get<std::int64_t>("num_attention_heads", 12, positive);
  if (const auto head_dim = f.optional<std::int64_t>("head_dim", positive)) {
    check(*head_dim * c.num_heads == c.embed_dim, "{}: 'head_dim' {} times {} heads is not the width {}", f.source(),
          *head_dim, c.num_heads, c.embed_dim);
  }
  c.mlp_ratio = mlp_ratio_for(c.embed_dim, f.get<std::int64_t>("intermediate_size", 4 * c.embed_dim, positive));
  c.img_size = read_size(f, "image_size", {224, 224});
  c.patch_size = read_size(f, "patch_size", {16, 16});
  c.in_chans = f.get<std::int64_t>("num_channels", 3, positive);
  c.qkv_bias = f.get<bool>("qkv_bias", true);
  c.norm_layer.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-12, {1e-30, 1}));
  c.act_layer = ops::activation_named(timm_activation(f));
  c.num_classes = 0;
}

OrderedJson hub_encoder_json(const VitConfig& c) {
  OrderedJson json;
  json["hidden_size"] = c.embed_dim;
  json["num_hidden_layers"] = c.depth;
  json["num_attention_heads"] = c.num_heads;
  json["hidden_act"] = hub_activation(c.act_layer);
  json["hidden_dropout_prob"] = 0.0;
  json["attention_probs_dropout_prob"] = 0.0;
  json["initializer_range"] = 0.02;
  json["layer_norm_eps"] = shortest(c.norm_layer.eps);
  json["image_size"] = side(c.img_size);
  json["patch_size"] = side(c.patch_size);
  json["num_channels"] = c.in_chans;
  json["qkv_bias"] = c.qkv_bias;
  return json;
}

std::string not_plain(const VitConfig& c) {
  const Reasons differences = {
      {!c.class_token, "it has no class token"},
      {c.reg_tokens > 0, "it has register tokens (reg_tokens)"},
      {c.distilled, "it has a distillation token"},
      {c.init_values && *c.init_values != 0, "it has layer scales (init_values)"},
      {c.no_embed_class, "its class token has no position (no_embed_class)"},
      {c.pos_embed == VitConfig::Positions::none || c.rel_pos_type.has_value(), "it has no absolute positions"},
      {c.pre_norm, "it has a norm before its blocks (pre_norm)"},
      {!c.final_norm, "it has no final norm"},
      {c.fc_norm.value_or(false), "its final norm is behind the pooling (fc_norm)"},
      {c.post_norm, "its norms are behind attention and Mlp"},
      {c.block_kind != nn::BlockKind::sequential, "its blocks have branches in parallel (block_fn)"},
      {c.differential, "its attention is differential (attn_layer)"},
      {c.embed_norm_layer.has_value(), "its patches are normed (embed_norm_layer)"},
      {c.qk_norm || c.scale_attn_norm || c.scale_mlp_norm, "it has norms inside of attention or Mlp"},
      {!c.proj_bias, "it has no biases in its projections (proj_bias)"},
      {c.mlp_layer != nn::MlpKind::mlp, "its Mlp is gated (mlp_layer)"},
      {c.norm_layer.kind != nn::NormKind::layer, "its norms are not LayerNorm (norm_layer)"},
      {c.pool_include_prefix, "it pools over all tokens (pool_include_prefix)"},
      {c.dynamic_img_pad, "it fills images up to whole patches (dynamic_img_pad)"}};
  return first_reason(differences);
}

}  // namespace vitrail::models
