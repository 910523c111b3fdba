#include "vitrail/models/vit/vit_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/vit/families.h"
#include "vitrail/models/vit/huggingface_vit.h"
#include "vitrail/models/vit/vit_init.h"

namespace vitrail::models {
namespace {

using io::Fields;
using io::Kind;

nn::MlpKind mlp_layer(Fields& fields) {
  const std::string name = read_choice(fields, "mlp_layer", "mlp", {"mlp", "glumlp", "swiglupacked", "swiglu"});
  return name == "mlp" ? nn::MlpKind::mlp : (name == "swiglu" ? nn::MlpKind::swiglu : nn::MlpKind::glu);
}

// Reads the arguments that VisionTransformer, VisionTransformerDistilled and VisionTransformerRelPos share.
void read_common(Fields& f, VitConfig& c, const std::string& start) {
  read_shared(f, c);
  c.qk_norm = f.get<bool>("qk_norm", c.qk_norm);
  c.class_token = f.get<bool>("class_token", c.class_token);
  c.weight_init = read_weight_init(f, start);
  c.fix_init = f.get<bool>("fix_init", false);
  c.act_layer = read_activation(f);
}

// Reads timm's classes of blocks and of attention.
void read_blocks(Fields& f, VitConfig& c) {
  const std::string block =
      read_choice(f, "block_fn", "block",
                  {"block", "respostblock", "parallelthingsblock", "parallelscalingblock", "diffparallelscalingblock"});
  c.post_norm = block == "respostblock";
  c.block_kind = block == "parallelthingsblock"            ? nn::BlockKind::parallel_things
                 : block.ends_with("parallelscalingblock") ? nn::BlockKind::parallel_scaling
                                                           : nn::BlockKind::sequential;
  const std::string attention =
      read_choice(f, "attn_layer", "attn", {"", "attn", "attention", "diff", "diffattention"});
  c.differential = attention.starts_with("diff");
  check(!c.differential || c.block_kind != nn::BlockKind::parallel_scaling,
        "{}: 'attn_layer' is not for {}: block_fn 'diffparallelscalingblock' has differential attention", f.source(),
        block);
  c.differential = c.differential || block == "diffparallelscalingblock";
}

VitConfig read_vit(Fields& f, const VitConfig& start) {
  VitConfig c = start;
  read_common(f, c, "");
  c.global_pool = nn::pool_named(
      f.choice("global_pool", "token", {"", "token", "avg", "max", "avgmax", "sum", "map", "token_avg"}));
  c.scale_attn_norm = f.get<bool>("scale_attn_norm", false);
  c.scale_mlp_norm = f.get<bool>("scale_mlp_norm", false);
  c.proj_bias = f.get<bool>("proj_bias", true);
  c.init_values = as_float(f.optional<double>("init_values"));
  read_positions(f, c);
  read_position_resize(f, c);
  c.no_embed_class = f.get<bool>("no_embed_class", false);
  c.reg_tokens = f.get<std::int64_t>("reg_tokens", 0, {0, 4096});
  c.pre_norm = f.get<bool>("pre_norm", false);
  c.final_norm = f.get<bool>("final_norm", true);
  c.fc_norm = f.optional<bool>("fc_norm");
  c.pool_include_prefix = f.get<bool>("pool_include_prefix", false);
  c.dynamic_img_size = f.get<bool>("dynamic_img_size", false);
  c.dynamic_img_crop = f.get<bool>("dynamic_img_crop", false);
  c.dynamic_img_pad = f.get<bool>("dynamic_img_pad", false);
  c.pos_drop_rate = f.get<double>("pos_drop_rate", 0, {0, 1});
  c.mlp_layer = mlp_layer(f);
  read_blocks(f, c);
  if (f.kind("embed_norm_layer") != Kind::absent) {
    c.embed_norm_layer = read_norm(f, {}, "embed_norm_layer");
  }
  f.finish();
  return c;
}

VitConfig read_plain_vit(const nlohmann::json& arguments, const std::string& source) {
  Fields fields(arguments, source);
  return read_vit(fields, {});
}

VitConfig read_vit_distilled(const nlohmann::json& arguments, const std::string& source) {
  Fields fields(arguments, source);
  VitConfig start;
  start.distilled = true;
  return read_vit(fields, start);
}

VitConfig read_vit_relpos(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  VitConfig c;
  c.kind = VitConfig::Kind::relpos;
  c.class_token = false;
  c.pos_embed = VitConfig::Positions::none;
  read_common(f, c, "reset");
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "token", "sum"}));
  c.init_values = f.kind("init_values") == Kind::absent ? 1e-6F : as_float(f.optional<double>("init_values"));
  c.fc_norm = f.get<bool>("fc_norm", false);
  const std::string kind = f.choice("rel_pos_type", "mlp", {"mlp", "mlp_swin", "bias"});
  c.rel_pos_type = kind == "bias"  ? nn::RelPos::Kind::bias
                   : kind == "mlp" ? nn::RelPos::Kind::mlp
                                   : nn::RelPos::Kind::mlp_swin;
  c.rel_pos_dim = f.get<std::int64_t>("rel_pos_dim", c.rel_pos_dim, {1, largest_size});
  c.shared_rel_pos = f.get<bool>("shared_rel_pos", false);
  c.post_norm =
      read_choice(f, "block_fn", "relposblock", {"relposblock", "respostrelposblock"}) == "respostrelposblock";
  f.finish();
  return c;
}

// The networks that stand in front of timm's hybrids. Which, and their sizes, are arguments of vitrail's own, since
// each architecture name has its own network in timm.
ResNetV2Config resnetv2_in_front(Fields& f) {
  ResNetV2Config c;
  c.layers = f.get<std::vector<std::int64_t>>("backbone_layers", c.layers, {1, 256});
  c.channels = f.get<std::vector<std::int64_t>>("backbone_channels", c.channels, {1, 1 << 16});
  c.stem_chs = f.get<std::int64_t>("backbone_stem_chs", c.stem_chs, {1, 1 << 16});
  check(c.layers.size() <= 4, "{}: 'backbone_layers' names {} stages, expected up to 4", f.source(), c.layers.size());
  const bool same = f.get<bool>("padding_same", true);
  c.stem_pool = same ? ResNetV2Config::StemPool::by_size : ResNetV2Config::StemPool::even;
  c.conv_layer = {.standardize = 1e-8F, .same_padding = same};
  c.preact = false;
  c.num_classes = 0;
  c.global_pool = nn::Pool::none;
  return c;
}

// timm's resnet26d or resnet50d, without its head.
ResNetConfig resnetd_in_front(Fields& f) {
  ResNetConfig c;
  c.layers = f.get<std::vector<std::int64_t>>("backbone_layers", c.layers, {1, 256});
  check(!c.layers.empty() && c.layers.size() <= 4, "{}: 'backbone_layers' names {} stages, expected 1 to 4", f.source(),
        c.layers.size());
  c.channels.resize(c.layers.size());
  c.channels = f.get<std::vector<std::int64_t>>("backbone_channels", c.channels, {1, 1 << 16});
  c.stem_type = ResNetConfig::Stem::deep;
  c.stem_width = f.get<std::int64_t>("backbone_stem_chs", 32, {1, 1 << 16});
  c.avg_down = true;
  c.num_classes = 0;
  c.global_pool = nn::Pool::none;
  return c;
}

VitConfig read_vit_hybrid(const nlohmann::json& arguments, const std::string& source) {
  Fields fields(arguments, source);
  VitConfig start;
  start.patch_size = {1, 1};
  const std::string kind = read_choice(fields, "backbone", "resnetv2", {"resnetv2", "resnetd", "convstem"});
  if (kind == "resnetv2") {
    start.backbone = resnetv2_in_front(fields);
  } else if (kind == "resnetd") {
    start.backbone = resnetd_in_front(fields);
  }
  VitConfig c = read_vit(fields, start);
  if (kind == "convstem") {
    c.backbone = ConvStemConfig{c.in_chans, c.embed_dim};
  } else if (auto* const resnet = std::get_if<ResNetV2Config>(&*c.backbone)) {
    resnet->in_chans = c.in_chans;
    resnet->img_size = c.img_size;
  } else {
    std::get<ResNetConfig>(*c.backbone).in_chans = c.in_chans;
    std::get<ResNetConfig>(*c.backbone).img_size = c.img_size;
  }
  return c;
}

constexpr HubKind vit_hub_kinds[] = {{"vit", read_hub_vit},
                                     {"deit", read_hub_deit},
                                     {"dinov2", read_hub_dinov2},
                                     {"dinov2_with_registers", read_hub_dinov2_with_registers},
                                     {"clip", read_hub_clip_vision},
                                     {"clip_vision_model", read_hub_clip_vision},
                                     {"siglip", read_hub_siglip_vision},
                                     {"siglip_vision_model", read_hub_siglip_vision}};

}  // namespace

void read_positions(Fields& f, VitConfig& c) {
  using Absolute = nn::AbsoluteKind;
  using Relative = nn::RelPos::Kind;
  using Alibi = nn::AlibiKind;
  using Rotary = nn::RotaryPositions::Kind;
  struct Code {
    std::string name;
    Absolute added = Absolute::none;
    std::optional<Relative> relative = std::nullopt;
    std::optional<Alibi> alibi = std::nullopt;
    std::optional<Rotary> rotary = std::nullopt;
    double temperature = 0;  // of rotary positions
  };
  static const std::vector<Code> codes = {
      {""},
      {"none"},
      {"learn", Absolute::learned},
      {"sincos1d", Absolute::sincos1d},
      {"sincos2d", Absolute::sincos},
      {"sincos2d_gsd", Absolute::sincos_gsd},
      {"fourier", Absolute::fourier},
      {"fourier_learn", Absolute::fourier_learned},
      {.name = "rel_bias", .relative = Relative::bias},
      {.name = "rel_mlp", .relative = Relative::mlp_swin},
      {.name = "alibi1d", .alibi = Alibi::sequence},
      {.name = "alibi2d", .alibi = Alibi::grid},
      {.name = "rope1d", .rotary = Rotary::sequence, .temperature = 10000},
      {.name = "rope2d", .rotary = Rotary::axial, .temperature = 100},
      {.name = "rope2d_mixed", .rotary = Rotary::mixed, .temperature = 10},
  };
  std::vector<std::string> names;
  names.reserve(codes.size());
  for (const Code& code : codes) {
    names.push_back(code.name);
  }
  const std::string name = f.choice("pos_embed", "learn", names);
  const Code& code = *std::ranges::find(codes, name, &Code::name);
  c.pos_embed = code.added;
  c.rel_pos_type = code.relative;
  c.alibi = code.alibi;
  c.rope.reset();
  if (code.rotary) {
    c.rope = nn::RotaryPositions::Config{.kind = *code.rotary,
                                         .axial = {.temperature = code.temperature, .columns_first = true}};
  }
  const auto only_for = [&](const char* key, bool fits, double fallback) {
    const std::optional<double> value = f.optional<double>(key, {1e-6, 1e6});
    check(!value || fits, "{}: '{}' has no meaning with pos_embed '{}'", f.source(), key, name);
    return value.value_or(fallback);
  };
  c.gsd = only_for("gsd", c.pos_embed == Absolute::sincos_gsd, 1);
  c.fourier_sigma =
      only_for("fourier_sigma", c.pos_embed == Absolute::fourier || c.pos_embed == Absolute::fourier_learned, 1);
}

void read_position_resize(Fields& f, VitConfig& c) {
  using Resize = VitConfig::PositionResize;
  const std::string name = f.choice("pos_embed_resize", "timm", {"timm", "transformers", "dino"});
  c.pos_embed_resize = name == "dino" ? Resize::dino : (name == "timm" ? Resize::timm : Resize::transformers);
}

void read_shared(Fields& f, VitConfig& c) {
  const io::Range count{0, largest_size};
  const io::Range positive{1, largest_size};
  const io::Range rate{0, 1};
  c.img_size = read_size(f, "img_size", c.img_size);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, count);
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.depth = f.get<std::int64_t>("depth", c.depth, {0, 4096});
  c.num_heads = f.get<std::int64_t>("num_heads", c.num_heads, positive);
  c.mlp_ratio = f.get<double>("mlp_ratio", c.mlp_ratio, {1e-3, 1e3});
  c.qkv_bias = f.get<bool>("qkv_bias", c.qkv_bias);
  c.drop_rate = f.get<double>("drop_rate", 0, rate);
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, rate);
  c.attn_drop_rate = f.get<double>("attn_drop_rate", 0, rate);
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, rate);
  c.norm_layer = read_norm(f);
}

constinit const Family vit_family = {.name = "vit",
                                     .table = vit_table,
                                     .build = build<VisionTransformer, read_plain_vit>,
                                     .first_conv = "patch_embed.proj",
                                     .fc_norm = "fc_norm",
                                     .beyond_timm = "pos_embed_resize dynamic_img_crop",
                                     .hub_kinds = vit_hub_kinds,
                                     .hub_form = vit_hub_form};

constinit const Family vit_distilled_family = {.name = "vit_distilled",
                                               .table = vit_table,
                                               .build = build<VisionTransformer, read_vit_distilled>,
                                               .first_conv = "patch_embed.proj",
                                               .beyond_timm = "pos_embed_resize dynamic_img_crop",
                                               .hub_form = vit_hub_form};

constinit const Family vit_relpos_family = {.name = "vit_relpos",
                                            .table = vit_table,
                                            .build = build<VisionTransformer, read_vit_relpos>,
                                            .first_conv = "patch_embed.proj",
                                            .fc_norm = "fc_norm",
                                            .hub_form = vit_hub_form};

constinit const Family vit_hybrid_family = {
    .name = "vit_hybrid",
    .table = vit_hybrid_table,
    .build = build<VisionTransformer, read_vit_hybrid>,
    .first_conv =
        "patch_embed.backbone.stem.conv patch_embed.backbone.conv patch_embed.backbone.conv1.0 "
        "patch_embed.backbone.0.conv patch_embed.proj",
    .fc_norm = "fc_norm",
    .beyond_timm = "pos_embed_resize dynamic_img_crop",
    .hub_form = vit_hub_form};

}  // namespace vitrail::models
