#include <string>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/arguments.h"
#include "vitrail/models/family.h"
#include "vitrail/models/swin.h"
#include "vitrail/models/vit_init.h"

namespace vitrail::models {
namespace {

using io::Fields;
using io::Kind;

// A number for all stages, or one for each.
template <class T>
std::vector<T> read_per_stage(Fields& f, const std::string& key, T fallback, std::size_t stages, io::Range range) {
  if (f.kind(key) == Kind::list) {
    return f.get<std::vector<T>>(key, range);
  }
  return std::vector<T>(stages, f.optional<T>(key, range).value_or(fallback));
}

// timm's resolve_stage_window_sizes: a number or a pair (rows, columns) for all stages, or a list with one of these for
// each stage. Two numbers are a pair.
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

SwinConfig read_swin(const nlohmann::json& arguments, const std::string& source) {
  const io::Range count{0, largest_size};
  const io::Range positive{1, largest_size};
  const io::Range rate{0, 1};
  Fields f(arguments, source);
  SwinConfig c;
  c.img_size = read_size(f, "img_size", c.img_size);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, count);
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.depths = f.get<std::vector<std::int64_t>>("depths", c.depths, {0, 4096});
  c.num_heads = f.get<std::vector<std::int64_t>>("num_heads", c.num_heads, positive);
  const std::size_t stages = c.depths.size();
  c.head_dim = read_per_stage<std::int64_t>(f, "head_dim", 0, stages, count);
  c.window_size = read_windows(f, "window_size", {7, 7}, stages);
  c.always_partition = f.get<bool>("always_partition", false);
  const bool dynamic = f.get<bool>("dynamic_img_size", false);
  c.strict_img_size = f.get<bool>("strict_img_size", true) && !dynamic;
  c.mlp_ratio = read_per_stage<double>(f, "mlp_ratio", 4, stages, {1e-3, 1e3});
  c.qkv_bias = f.get<bool>("qkv_bias", true);
  c.drop_rate = f.get<double>("drop_rate", 0, rate);
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, rate);
  c.attn_drop_rate = f.get<double>("attn_drop_rate", 0, rate);
  c.drop_path_rate = f.get<double>("drop_path_rate", 0.1, rate);
  c.weight_init = read_weight_init(f, "");
  f.finish();
  return c;
}

}  // namespace

std::unique_ptr<ImageModel> build_swin(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store) {
  return std::make_unique<SwinTransformer>(read_swin(arguments, source), store);
}

}  // namespace vitrail::models
