#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/swin/families.h"
#include "vitrail/models/swin/huggingface_swin.h"
#include "vitrail/models/swin/swin.h"
#include "vitrail/models/vit/vit_init.h"

namespace vitrail::models {
namespace {

using io::Fields;
using io::Kind;

constexpr io::Range mlp_ratios{1e-3, 1e3};

// Reads a number for all stages, or one for each stage.
template <class T>
std::vector<T> read_per_stage(Fields& f, const std::string& key, T fallback, std::size_t stages, io::Range range) {
  if (f.kind(key) == Kind::list) {
    return f.get<std::vector<T>>(key, range);
  }
  return std::vector<T>(stages, f.optional<T>(key, range).value_or(fallback));
}

// Reads windows as timm's resolve_stage_window_sizes does: a number or a pair (rows, columns) for all stages, or a list
// with one of these for each stage. Two numbers are a pair.
std::vector<nn::Size2> read_windows(Fields& f, const std::string& key, const nn::Size2& fallback, std::size_t stages) {
  const bool list = f.kind(key) == Kind::list;
  const bool per_stage = list && (f.raw(key).size() != 2 || f.raw(key)[0].is_array());
  if (!per_stage) {
    return std::vector<nn::Size2>(stages, read_size(f, key, fallback));
  }
  std::vector<nn::Size2> windows;
  for (const nlohmann::json& value : f.raw(key)) {
    const nlohmann::json one = {{key, value}};
    Fields inner(one, f.source());
    windows.push_back(read_size(inner, key, fallback));
  }
  return windows;
}

// Reads the arguments that all three versions share.
void read_common(Fields& f, SwinConfig& c) {
  const io::Range count{0, largest_size};
  const io::Range positive{1, largest_size};
  const io::Range rate{0, 1};
  c.img_size = read_size(f, "img_size", c.img_size);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, count);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.depths = f.get<std::vector<std::int64_t>>("depths", c.depths, {0, 4096});
  c.num_heads = f.get<std::vector<std::int64_t>>("num_heads", c.num_heads, positive);
  c.always_partition = f.get<bool>("always_partition", false);
  const bool dynamic = f.get<bool>("dynamic_img_size", false);
  c.strict_img_size = f.get<bool>("strict_img_size", true) && !dynamic;
  c.drop_rate = f.get<double>("drop_rate", 0, rate);
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, rate);
  c.attn_drop_rate = f.get<double>("attn_drop_rate", 0, rate);
  c.drop_path_rate = f.get<double>("drop_path_rate", c.drop_path_rate, rate);
}

// Reads `window_fit`, an argument of vitrail's own.
SwinConfig::WindowFit read_window_fit(Fields& f) {
  const bool hub = f.choice("window_fit", "timm", {"timm", "transformers"}) == "transformers";
  return hub ? SwinConfig::WindowFit::transformers : SwinConfig::WindowFit::timm;
}

SwinConfig read_swin(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  SwinConfig c;
  read_common(f, c);
  const std::size_t stages = c.depths.size();
  c.window_fit = read_window_fit(f);
  c.head_dim = read_per_stage<std::int64_t>(f, "head_dim", 0, stages, {0, largest_size});
  c.window_size = read_windows(f, "window_size", {7, 7}, stages);
  c.mlp_ratio = read_per_stage<double>(f, "mlp_ratio", 4, stages, mlp_ratios);
  c.qkv_bias = f.get<bool>("qkv_bias", true);
  c.weight_init = read_weight_init(f, "");
  f.finish();
  return c;
}

SwinConfig read_swin_v2(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  SwinConfig c;
  c.version = SwinConfig::Version::v2;
  read_common(f, c);
  const std::size_t stages = c.depths.size();
  c.head_dim.assign(stages, 0);
  c.window_size = read_windows(f, "window_size", {7, 7}, stages);
  c.mlp_ratio.assign(stages, f.get<double>("mlp_ratio", 4, mlp_ratios));
  c.qkv_bias = f.get<bool>("qkv_bias", true);
  c.act_layer = read_activation(f);
  c.window_fit = read_window_fit(f);
  const io::Range sides{0, largest_size};
  for (const std::int64_t side : f.get<std::vector<std::int64_t>>("pretrained_window_sizes", {}, sides)) {
    c.pretrained_window_sizes.push_back({side, side});
  }
  f.finish();
  return c;
}

SwinConfig read_swin_v2_cr(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  SwinConfig c;
  c.version = SwinConfig::Version::v2_cr;
  c.drop_path_rate = 0;
  read_common(f, c);
  const std::size_t stages = c.depths.size();
  c.head_dim.assign(stages, 0);
  // Without a size, a window is a fraction of the patch grid, whatever the grid of its stage is.
  const std::vector<std::int64_t> ratios =
      read_per_stage<std::int64_t>(f, "window_ratio", 8, stages, {1, largest_size});
  if (const Kind kind = f.kind("window_size"); kind != Kind::absent && kind != Kind::null) {
    c.window_size = read_windows(f, "window_size", {7, 7}, stages);
  } else {
    c.window_size.clear();
    for (const std::int64_t ratio : ratios) {
      const auto share = [&](std::size_t side) {
        return std::max<std::int64_t>(1, c.img_size[side] / c.patch_size[side] / ratio);
      };
      c.window_size.push_back({share(0), share(1)});
    }
  }
  c.mlp_ratio.assign(stages, f.get<double>("mlp_ratio", 4, mlp_ratios));
  c.init_values = f.kind("init_values") == Kind::absent ? 0.0 : f.optional<double>("init_values");
  c.extra_norm_period = f.get<std::int64_t>("extra_norm_period", 0, {0, largest_size});
  c.extra_norm_stage = f.get<bool>("extra_norm_stage", false);
  f.ignore("sequential_attn");  // it has no effect in timm either
  const std::string start = f.get<std::string>("weight_init", "reset");
  c.weight_init = start == "reset" || start == "skip" ? VitConfig::WeightInit::reset : VitConfig::WeightInit::timm;
  f.finish();
  return c;
}

constexpr HubKind swin_hub_kinds[] = {{"swin", read_hub_swin}};
constexpr HubKind swin_v2_hub_kinds[] = {{"swinv2", read_hub_swinv2}};

}  // namespace

constinit const Family swin_family = {.name = "swin",
                                      .table = swin_table,
                                      .build = build<SwinTransformer, read_swin>,
                                      .first_conv = "patch_embed.proj",
                                      .beyond_timm = "window_fit",
                                      .hub_kinds = swin_hub_kinds,
                                      .hub_form = swin_hub_form};

constinit const Family swin_v2_family = {.name = "swin_v2",
                                         .table = swin_table,
                                         .build = build<SwinTransformer, read_swin_v2>,
                                         .first_conv = "patch_embed.proj",
                                         .beyond_timm = "window_fit",
                                         .hub_kinds = swin_v2_hub_kinds,
                                         .hub_form = swin_hub_form};

constinit const Family swin_v2_cr_family = {.name = "swin_v2_cr",
                                            .table = swin_table,
                                            .build = build<SwinTransformer, read_swin_v2_cr>,
                                            .first_conv = "patch_embed.proj",
                                            .hub_form = swin_hub_form};

}  // namespace vitrail::models
