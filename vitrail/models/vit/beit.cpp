// BEiT (Bao et al. 2022) and BEiT v2 (Peng et al. 2022), timm's Beit: a VisionTransformer with relative positions whose
// keys have no bias.
#include <nlohmann/json.hpp>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/vit/families.h"
#include "vitrail/models/vit/huggingface_vit.h"
#include "vitrail/models/vit/vit_config.h"

namespace vitrail::models {
namespace {

VitConfig read_beit(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  VitConfig c;
  c.kind = VitConfig::Kind::beit;
  c.fix_init = true;
  c.k_bias = false;
  read_shared(f, c);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "token"}));
  c.pos_drop_rate = f.get<double>("pos_drop_rate", 0, {0, 1});
  c.init_values = as_float(f.optional<double>("init_values"));
  read_position_resize(f, c);
  c.pos_embed = f.get<bool>("use_abs_pos_emb", true) ? VitConfig::Positions::learned : VitConfig::Positions::none;
  const bool own = f.get<bool>("use_rel_pos_bias", false);
  c.shared_rel_pos = f.get<bool>("use_shared_rel_pos_bias", false);
  c.both_rel_pos = own && c.shared_rel_pos;
  if (own || c.shared_rel_pos) {
    c.rel_pos_type = nn::RelPos::Kind::bias;
  }
  if (f.kind("pos_embed") != io::Kind::absent) {
    read_positions(f, c);
    c.shared_rel_pos = c.both_rel_pos = false;
  }
  c.scale_mlp_norm = f.get<bool>("scale_mlp", false);
  if (f.get<bool>("swiglu_mlp", false)) {
    c.mlp_layer = nn::MlpKind::swiglu;
    c.act_layer = ops::Activation::silu;
  }
  c.fc_norm = f.optional<bool>("use_fc_norm").value_or(c.global_pool == nn::Pool::avg);
  c.head_init_scale = f.get<double>("head_init_scale", 0.001, {0, 1e6});
  f.finish();
  return c;
}

constexpr HubKind beit_hub_kinds[] = {{"beit", read_hub_beit}};

}  // namespace

constinit const Family beit_family = {.name = "beit",
                                      .table = beit_table,
                                      .build = build<VisionTransformer, read_beit>,
                                      .first_conv = "patch_embed.proj",
                                      .fc_norm = "use_fc_norm",
                                      .beyond_timm = "pos_embed gsd fourier_sigma pos_embed_resize",
                                      .hub_kinds = beit_hub_kinds,
                                      .hub_form = vit_hub_form};

}  // namespace vitrail::models
