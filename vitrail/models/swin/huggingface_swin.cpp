// The Swin Transformers of transformers: Swin and Swin V2.
#include "vitrail/models/swin/huggingface_swin.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace vitrail::models {
namespace {

using Json = nlohmann::json;
using Version = SwinConfig::Version;

constexpr double swin_eps = 1e-5;  // the epsilon of all norms, in timm and in transformers' config

// Throws Error where timm and transformers cut windows in different ways (SwinConfig::WindowFit). Both do the same on
// square grids that need no padding, but for what is left of attention through V2's mask: transformers' is twice
// timm's.
void check_windows(const SwinConfig& c) {
  nn::Size2 grid = {c.img_size[0] / c.patch_size[0], c.img_size[1] / c.patch_size[1]};
  for (std::size_t stage = 0; stage < c.depths.size(); ++stage) {
    nn::Size2 window = c.window_size[stage];
    if (c.version == Version::v2) {  // its windows are no larger than the grid
      window = {std::min(grid[0], window[0]), std::min(grid[1], window[1])};
    }
    const bool whole = std::min(window[0], window[1]) > 0 && grid[0] % window[0] == 0 && grid[1] % window[1] == 0;
    const bool alike = c.version == Version::v2 || grid[0] == grid[1] || (grid[0] > window[0] && grid[1] > window[1]);
    // The number of patches along a side that makes whole windows in all stages; the shift is limited so that it can be
    // computed.
    const std::int64_t step = c.window_size[0][0] << std::min<std::size_t>(c.depths.size() - 1, 16);
    const std::int64_t enough = (c.img_size[0] / c.patch_size[0] / step + 1) * step;
    check(whole && alike && std::min(grid[0], grid[1]) > 0,
          "on images of {}×{} stage {} has {}×{} patches, which transformers cuts into windows of {}×{} in another "
          "way than timm and vitrail, but not on images of {}×{}",
          c.img_size[0], c.img_size[1], stage, grid[0], grid[1], c.window_size[stage][0], c.window_size[stage][1],
          enough * c.patch_size[0], enough * c.patch_size[1]);
    grid = {(grid[0] + 1) / 2, (grid[1] + 1) / 2};
  }
}

// The architecture of a family with the fewest differences from these arguments.
std::string nearest_architecture(std::string_view family, const Json& arguments) {
  std::string nearest;
  std::size_t fewest = arguments.size() + 1;
  for (const Architecture& architecture : architectures()) {
    if (architecture.family != family) {
      continue;
    }
    const Json own = default_arguments(find_architecture(architecture.name), "");
    std::size_t differing = 0;
    for (const auto& [key, value] : arguments.items()) {
      differing += own.value(key, Json()) == value ? 0 : 1;
    }
    if (differing < fewest) {
      fewest = differing;
      nearest = architecture.name;
    }
  }
  return nearest;
}

// The pretrained_window_sizes that mean none; transformers has four of them by default, whatever the number of stages
// is.
std::vector<std::int64_t> no_windows(const SwinConfig& c) {
  return std::vector<std::int64_t>(std::max<std::size_t>(4, c.depths.size()), 0);
}

void read_swin_kind(io::Fields& f, FolderConfig& folder, Version version) {
  const bool v2 = version == Version::v2;
  SwinConfig c;
  c.version = version;
  c.img_size = read_size(f, "image_size", c.img_size);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.in_chans = f.get<std::int64_t>("num_channels", 3, positive);
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.depths = f.get<std::vector<std::int64_t>>("depths", c.depths, {0, 4096});
  c.num_heads = f.get<std::vector<std::int64_t>>("num_heads", c.num_heads, positive);
  const auto window = f.get<std::int64_t>("window_size", 7, positive);
  c.window_size.assign(c.depths.size(), {window, window});
  const auto eps = f.get<double>("layer_norm_eps", swin_eps, {1e-30, 1});
  check(eps == swin_eps, "{}: 'layer_norm_eps' must be {} for a Swin Transformer, not {}", f.source(), swin_eps, eps);
  check(!f.get<bool>("use_absolute_embeddings", false),
        "{}: Swin Transformers have no absolute positions here: 'use_absolute_embeddings' must be false", f.source());
  const std::string activation = timm_activation(f);
  check(v2 || activation == "gelu", "{}: 'hidden_act' must be 'gelu' for Swin's first version", f.source());
  const Json none = no_windows(c);
  Json wanted = {{"img_size", side(c.img_size)},
                 {"patch_size", side(c.patch_size)},
                 {"in_chans", c.in_chans},
                 {"embed_dim", c.embed_dim},
                 {"depths", c.depths},
                 {"num_heads", c.num_heads},
                 {"window_size", window},
                 {"mlp_ratio", f.get<double>("mlp_ratio", 4, {1e-3, 1e3})},
                 {"qkv_bias", f.get<bool>("qkv_bias", true)},
                 {"window_fit", "transformers"},
                 {"dynamic_img_size", true}};
  Json defaults = {{"patch_size", 4}, {"in_chans", 3}, {"window_size", 7}, {"mlp_ratio", 4.0}, {"qkv_bias", true}};
  if (const auto rate = f.optional<double>("drop_path_rate", {0, 0.99})) {
    wanted["drop_path_rate"] = *rate;
    defaults["drop_path_rate"] = c.drop_path_rate;
  }
  if (v2) {
    wanted["act_layer"] = activation;
    defaults["act_layer"] = "gelu";
    wanted["pretrained_window_sizes"] =
        f.get<std::vector<std::int64_t>>("pretrained_window_sizes", none, {0, largest_size});
    defaults["pretrained_window_sizes"] = none;
  }
  Arguments arguments(f, folder, nearest_architecture(v2 ? "swin_v2" : "swin", wanted));
  for (const auto& [key, value] : wanted.items()) {
    arguments.set(key, value, defaults.value(key, Json()));
  }
  folder.input_size = {c.in_chans, c.img_size[0], c.img_size[1]};
  folder.fixed_input_size = false;
  const std::string start = v2 ? "Swinv2" : "Swin";
  read_classes(f, folder, {start + "ForImageClassification"}, {start + "Model", start + "ForMaskedImageModeling"});
  take_pretrained(folder);
  folder.names = v2 ? hub_swin_v2_names() : hub_swin_names();
  folder.prefix = v2 ? "swinv2." : "swin.";
}

bool all_like_first(const auto& values) {
  return std::ranges::all_of(values, [&](const auto& value) { return value == values.front(); });
}

}  // namespace

void read_hub_swin(io::Fields& f, FolderConfig& folder) { read_swin_kind(f, folder, Version::v1); }
void read_hub_swinv2(io::Fields& f, FolderConfig& folder) { read_swin_kind(f, folder, Version::v2); }

HubForm swin_hub_form(const ImageModel& net) {
  const SwinConfig& c = known_body<SwinTransformer>(net).config();
  const bool v2 = c.version == Version::v2;
  check(v2 || c.version == Version::v1, "transformers has no Swin V2-CR");
  check(!c.depths.empty() && all_like_first(c.window_size) && c.window_size[0][0] == c.window_size[0][1],
        "transformers' Swin has square windows of one size (window_size)");
  check(all_like_first(c.mlp_ratio), "transformers' Swin has one mlp_ratio for all stages");
  check(std::ranges::all_of(c.head_dim, [](std::int64_t dim) { return dim == 0; }),
        "transformers' Swin has heads of width / num_heads (head_dim)");
  check(c.global_pool == nn::Pool::avg,
        "transformers' Swin takes the mean of all patches, and this model has global_pool '{}'",
        name_of(c.global_pool));
  check(!c.always_partition, "transformers' Swin has no always_partition");
  if (c.window_fit == SwinConfig::WindowFit::timm) {
    check_windows(c);
  }
  const std::string start = v2 ? "Swinv2" : "Swin";
  HubForm form;
  form.model_type = v2 ? "swinv2" : "swin";
  form.architecture = start + (c.num_classes > 0 ? "ForImageClassification" : "Model");
  form.names = v2 ? hub_swin_v2_names() : hub_swin_names();
  form.prefix = form.model_type + ".";
  nlohmann::ordered_json& json = form.config;
  json["image_size"] = side(c.img_size);
  json["patch_size"] = side(c.patch_size);
  json["num_channels"] = c.in_chans;
  json["embed_dim"] = c.embed_dim;
  json["depths"] = c.depths;
  json["num_heads"] = c.num_heads;
  json["window_size"] = c.window_size[0][0];
  json["drop_path_rate"] = c.drop_path_rate;
  json["mlp_ratio"] = c.mlp_ratio[0];
  json["qkv_bias"] = c.qkv_bias;
  json["hidden_act"] = hub_activation(c.act_layer);
  json["layer_norm_eps"] = swin_eps;
  json["use_absolute_embeddings"] = false;
  json["hidden_size"] = c.embed_dim << (c.depths.size() - 1);
  if (v2) {
    std::vector<std::int64_t> sides = no_windows(c);
    if (!c.pretrained_window_sizes.empty()) {
      sides.clear();
    }
    for (const nn::Size2& window : c.pretrained_window_sizes) {
      check(window[0] == window[1], "transformers' Swin has square windows (pretrained_window_sizes)");
      sides.push_back(window[0]);
    }
    json["pretrained_window_sizes"] = sides;
  }
  return form;
}

}  // namespace vitrail::models
