#include "vitrail/models/swin.h"

#include <cmath>
#include <numeric>
#include <string_view>

#include "vitrail/models/checkpoint.h"
#include "vitrail/models/vit_init.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

constexpr nn::NormConfig norm_config{nn::NormKind::layer, 1e-5F};  // torch.nn.LayerNorm's own epsilon

void check_config(const SwinConfig& c) {
  const std::size_t stages = c.depths.size();
  check(stages >= 1 && stages <= 16, "depths names {} stages, but there are between 1 and 16", stages);
  check(c.num_heads.size() == stages && c.head_dim.size() == stages && c.window_size.size() == stages &&
            c.mlp_ratio.size() == stages,
        "num_heads, head_dim, window_size and mlp_ratio are for the {} stages of depths, but are for {}, {}, {} and {}",
        stages, c.num_heads.size(), c.head_dim.size(), c.window_size.size(), c.mlp_ratio.size());
  check(c.patch_size[0] > 0 && c.patch_size[1] > 0, "patch_size must be positive, not {}x{}", c.patch_size[0],
        c.patch_size[1]);
  check(c.img_size[0] >= c.patch_size[0] && c.img_size[1] >= c.patch_size[1],
        "img_size {}x{} holds no patch of patch_size {}x{}", c.img_size[0], c.img_size[1], c.patch_size[0],
        c.patch_size[1]);
  check(c.in_chans > 0 && c.embed_dim > 0 && c.num_classes >= 0,
        "in_chans and embed_dim must be positive, and num_classes not negative");
  check(c.global_pool != nn::Pool::token && c.global_pool != nn::Pool::map && c.global_pool != nn::Pool::sum,
        "global_pool is 'avg', 'max', 'avgmax' or '', not '{}'", name_of(c.global_pool));
  check(c.global_pool != nn::Pool::none || c.num_classes == 0,
        "global_pool '' gives features, not logits: num_classes must be 0 with it, not {}", c.num_classes);
  for (const double rate : {c.drop_rate, c.proj_drop_rate, c.attn_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // About the multiply-accumulates of a picture, so that all counts that are made of these numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  double tokens = pixels / (real(c.patch_size[0]) * real(c.patch_size[1]));
  double width = real(c.embed_dim);
  double cost = pixels * real(c.in_chans) * width;
  for (std::size_t s = 0; s < stages; ++s, tokens = tokens / 4 + 1, width *= 2) {
    const Size2& window = c.window_size[s];
    check(c.depths[s] >= 0 && c.num_heads[s] > 0 && c.head_dim[s] >= 0 && window[0] > 0 && window[1] > 0 &&
              c.mlp_ratio[s] > 0,
          "stage {}: num_heads, window_size and mlp_ratio must be positive, depths and head_dim not negative", s);
    check(c.head_dim[s] > 0 || std::fmod(width, real(c.num_heads[s])) == 0,
          "stage {}: the width {} cannot be divided among num_heads {}", s, width, c.num_heads[s]);
    const double area = real(window[0]) * real(window[1]);
    const double attention = std::max(width, real(c.head_dim[s]) * real(c.num_heads[s]));
    const double filled = tokens + (c.always_partition ? area : 0);
    cost += real(c.depths[s] + 1) * (filled + area) * (area + 4 * width + 2 * c.mlp_ratio[s] * width) * attention;
  }
  check(cost < 1e17, "img_size {}x{} with embed_dim {} would take {:.0e} FLOPs for a picture", c.img_size[0],
        c.img_size[1], c.embed_dim, cost);
}

nn::InitRule init_rule(const SwinConfig& config) {
  VitConfig as_vit;
  as_vit.weight_init = config.weight_init;
  as_vit.num_classes = config.num_classes;
  return vit_init_rule(as_vit);
}

// The grid of the next stage: 2 × 2 tokens become one, the last ones of an odd side filled up.
Size2 halved(const Size2& grid) { return {(grid[0] + 1) / 2, (grid[1] + 1) / 2}; }

}  // namespace

SwinTransformer::SwinTransformer(const SwinConfig& config, const nn::StoreOptions& store) : config_(config) {
  check_config(config_);
  parameters = nn::ParameterStore(store);
  parameters.set_init_rule(init_rule(config_));
  const nn::Scope root(parameters);
  patch_embed_.emplace(root / "patch_embed", config_.patch_size, config_.in_chans, config_.embed_dim);
  patch_norm_.emplace(root / "patch_embed" / "norm", config_.embed_dim, norm_config);
  Size2 grid = patch_embed_->grid(config_.img_size[0], config_.img_size[1]);
  for (std::size_t s = 0; s < config_.depths.size(); ++s) {
    grid = s == 0 ? grid : halved(grid);
    stages_.push_back(make_stage(root / "layers" / static_cast<std::int64_t>(s), s, grid));
  }
  norm_.emplace(root / "norm", num_features(), norm_config);
  if (config_.num_classes > 0) {
    head_.emplace(root / "head" / "fc", num_features(), config_.num_classes);
  }
}

SwinBlockConfig SwinTransformer::block_config(std::size_t stage, std::int64_t index, const Size2& grid) const {
  const SwinConfig& c = config_;
  SwinBlockConfig block;
  block.dim = width(stage);
  block.num_heads = c.num_heads[stage];
  block.head_dim = c.head_dim[stage];
  block.windows = nn::fit_windows(grid, c.window_size[stage], index % 2 == 1, c.always_partition);
  block.mlp_ratio = c.mlp_ratio[stage];
  block.qkv_bias = c.qkv_bias;
  block.activation = c.act_layer;
  block.norm = norm_config;
  block.proj_drop = static_cast<float>(c.proj_drop_rate);
  block.attn_drop = static_cast<float>(c.attn_drop_rate);
  const std::int64_t before =
      std::accumulate(c.depths.begin(), c.depths.begin() + static_cast<std::ptrdiff_t>(stage), std::int64_t{0});
  block.index = static_cast<int>(before + index);
  block.drop_path =
      depth() > 1 ? static_cast<float>(c.drop_path_rate * block.index / static_cast<double>(depth() - 1)) : 0.0F;
  return block;
}

SwinTransformer::Stage SwinTransformer::make_stage(const nn::Scope& scope, std::size_t index, const Size2& grid) const {
  Stage stage;
  if (index > 0) {
    stage.downsample.emplace(scope / "downsample", width(index - 1), width(index), norm_config);
  }
  for (std::int64_t i = 0; i < config_.depths[index]; ++i) {
    stage.blocks.emplace_back(SwinBlock(scope / "blocks" / i, block_config(index, i, grid)));
  }
  return stage;
}

// x [B, C, H, W] → [B, H / p, W / p, D] in the pass's dtype.
Tensor SwinTransformer::patches(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4, "the model takes pictures [B, {}, H, W], not {}", config_.in_chans, x.shape());
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  if (config_.strict_img_size) {
    check(
        height == config_.img_size[0] && width == config_.img_size[1],
        "the model takes pictures of {}x{} (img_size), not of {}x{}; with dynamic_img_size it would take any that are "
        "made of whole patches of {}x{}",
        config_.img_size[0], config_.img_size[1], height, width, patch[0], patch[1]);
  } else {
    check(height > 0 && width > 0 && height % patch[0] == 0 && width % patch[1] == 0,
          "a picture of {}x{} is not made of whole patches: its sides must be multiples of {} and {}", height, width,
          patch[0], patch[1]);
  }
  const Size2 grid = patch_embed_->grid(height, width);
  const Tensor tokens = (*patch_embed_)(ops::cast(x, pass.dtype));
  return (*patch_norm_)(ops::reshape(tokens, {x.size(0), grid[0], grid[1], config_.embed_dim}));
}

Tensor SwinTransformer::run_stage(const Stage& stage, Tensor x, nn::Pass& pass) const {
  x = stage.downsample ? (*stage.downsample)(x) : x;
  Tensor shifted;  // the mask of all shifted blocks: their windows are the same
  for (const AnyBlock& any : stage.blocks) {
    x = std::visit(
        [&](const auto& block) {
          const bool is_shifted = block.windows.shift[0] > 0 || block.windows.shift[1] > 0;
          if (is_shifted && !shifted.defined()) {
            shifted = nn::shift_mask({x.size(1), x.size(2)}, block.windows);
          }
          const Tensor mask = is_shifted ? shifted : Tensor();
          return nn::run_block(
              [&block, mask](const Tensor& input, nn::Pass& block_pass) { return block(input, block_pass, mask); }, x,
              pass);
        },
        any);
  }
  return x;
}

Tensor SwinTransformer::forward(const Tensor& pictures, nn::Pass& pass) const {
  Tensor x = patches(pictures, pass);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    x = run_stage(stages_[s], x, pass);
    if (pass.recorder != nullptr && pass.recorder->wants_features()) {
      pass.recorder->feature(static_cast<int>(s), x);
    }
  }
  x = (*norm_)(x);
  if (config_.global_pool != nn::Pool::none) {
    x = nn::pool_tokens(ops::reshape(x, {x.size(0), x.size(1) * x.size(2), x.size(3)}), config_.global_pool, 0);
  }
  // The head runs in f32 whatever the pass's dtype: it is small, and its rounding would go straight into the logits.
  x = nn::Dropout{static_cast<float>(config_.drop_rate)}(ops::cast(x, DType::f32), pass);
  return head_ ? (*head_)(x) : x;
}

std::int64_t SwinTransformer::depth() const {
  return std::accumulate(config_.depths.begin(), config_.depths.end(), std::int64_t{0});
}

TokenLayout SwinTransformer::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 grid = patch_embed_->grid(height, width);
  return {0, grid[0], grid[1], false};
}

std::int64_t SwinTransformer::flops(std::int64_t height, std::int64_t width) const {
  Size2 grid = patch_embed_->grid(height, width);
  std::int64_t total = patch_embed_->flops(grid) + patch_norm_->flops(grid[0] * grid[1]);
  for (const Stage& stage : stages_) {
    if (stage.downsample) {
      grid = halved(grid);
      total += stage.downsample->flops(grid[0] * grid[1]);
    }
    for (const AnyBlock& any : stage.blocks) {
      total += std::visit([&](const auto& block) { return block.flops(grid); }, any);
    }
  }
  total += norm_->flops(grid[0] * grid[1]);
  return total + (head_ ? head_->flops(1) : 0);
}

std::int64_t SwinTransformer::layer_of(const std::string& parameter) const {
  const std::string_view name = parameter;
  if (name.starts_with("patch_embed")) {
    return 0;
  }
  const auto stage = index_after(name, "layers.");
  if (!stage) {
    return name.starts_with("norm") ? depth() : depth() + 1;  // the final norm goes with the last block
  }
  std::int64_t layer = 1;
  for (std::int64_t s = 0; s < *stage; ++s) {
    layer += config_.depths[static_cast<std::size_t>(s)];
  }
  const std::string blocks = "layers." + std::to_string(*stage) + ".blocks.";
  return layer + index_after(name, blocks).value_or(0);  // merging goes with the stage's first block
}

bool SwinTransformer::no_weight_decay(const std::string& parameter) const {
  return parameter.ends_with("relative_position_bias_table");
}

bool SwinTransformer::is_classifier(const std::string& parameter) const { return parameter.starts_with("head."); }

Tensor SwinTransformer::adapt(const std::string& parameter, const Tensor& value, const Size2& /*source*/) const {
  if (parameter == "patch_embed.proj.weight") {
    return value.rank() == 4 && value.size(1) != config_.in_chans ? with_channels(value, config_.in_chans) : value;
  }
  const Tensor& own = parameters.at(parameter).value;
  if (!parameter.ends_with("relative_position_bias_table") || value.rank() != 2 || value.size(0) == own.size(0)) {
    return value;
  }
  // The table of another window, which, as for timm, must have been a square.
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(value.size(0)))));
  if (side * side != value.size(0) || side % 2 == 0) {
    return value;
  }
  const std::int64_t layer = layer_of(parameter) - 1;
  Size2 window{};
  std::int64_t index = 0;
  for (const Stage& stage : stages_) {
    for (const AnyBlock& any : stage.blocks) {
      if (index++ == layer) {
        window = std::visit([](const auto& block) { return block.windows.size; }, any);
      }
    }
  }
  return nn::resample_bias_table(value, {(side + 1) / 2, (side + 1) / 2}, window);
}

}  // namespace vitrail::models
