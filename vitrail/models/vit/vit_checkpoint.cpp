// The answers of a Vision Transformer to checkpoints, optimizers and reports.
#include <cmath>
#include <string_view>
#include <utility>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {

using nn::Size2;

namespace {

// The grid of n tokens in a checkpoint for images of size `source`; a square if that size gives another number of
// tokens.
Size2 source_grid(std::int64_t n, const Size2& source, const Size2& patch) {
  const Size2 grid = {source[0] / patch[0], source[1] / patch[1]};
  if (grid[0] * grid[1] == n) {
    return grid;
  }
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  return {side, side};
}

// Whether a parameter belongs to the stem, as each of timm's classes defines it.
bool in_stem(const VitConfig& config, std::string_view name) {
  switch (config.kind) {
    case VitConfig::Kind::relpos:
      return starts_with_any(name, {"cls_token", "patch_embed"});
    case VitConfig::Kind::beit:
      return starts_with_any(name, {"cls_token", "pos_embed", "patch_embed", "rel_pos_bias"});
    case VitConfig::Kind::vit:
    case VitConfig::Kind::eva:
      return config.distilled
                 ? starts_with_any(name, {"cls_token", "pos_embed", "patch_embed", "dist_token"})
                 : starts_with_any(name, {"cls_token", "reg_token", "pos_embed", "patch_embed", "norm_pre"});
  }
  return false;
}

}  // namespace

TokenLayout VisionTransformer::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 cells = grid(height, width);
  return {prefix(), cells[0], cells[1], config_.class_token};
}

std::int64_t VisionTransformer::flops(std::int64_t height, std::int64_t width) const {
  const Size2 cells = grid(height, width);
  const std::int64_t patches = cells[0] * cells[1];
  const std::int64_t tokens = prefix() + patches;
  std::int64_t total = backbone_ ? backbone_->flops({height, width}) : 0;
  total += patch_embed_ ? patch_embed_->flops(cells) : 0;
  total += patch_norm_ ? patch_norm_->flops(patches) : 0;
  total += norm_pre_ ? norm_pre_->flops(tokens) : 0;
  total += shared_rel_pos_ ? shared_rel_pos_->flops() : 0;
  total += blocks_flops(tokens);
  total += final_norm_flops(tokens);
  total += attn_pool_ ? attn_pool_->flops(config_.pool_include_prefix ? tokens : patches) : 0;
  const std::int64_t pooled = config_.global_pool == nn::Pool::none ? tokens : 1;
  total += fc_norm_ ? fc_norm_->flops(pooled) : 0;
  total += head_ ? head_->flops(pooled) : 0;
  return total + (head_dist_ ? head_dist_->flops(1) : 0);
}

std::int64_t VisionTransformer::blocks_flops(std::int64_t tokens) const {
  std::int64_t total = 0;
  for (const nn::TowerBlock& block : blocks_) {
    total += block.flops(tokens);
  }
  return total;
}

std::int64_t VisionTransformer::layer_of(const std::string& parameter) const {
  const std::string_view name = parameter;
  if (in_stem(config_, name)) {
    return 0;
  }
  if (const auto index = index_after(name, "blocks.")) {
    return *index + 1;
  }
  return name.starts_with("norm") ? config_.depth
                                  : config_.depth + 1;  // the final norm belongs to the layer of the last block
}

bool VisionTransformer::no_weight_decay(const std::string& parameter) const {
  if (config_.kind == VitConfig::Kind::relpos) {
    return parameter == "cls_token";
  }
  if (config_.kind != VitConfig::Kind::eva && parameter.ends_with("relative_position_bias_table")) {
    return true;
  }
  return parameter == "rope.freqs" || parameter == "pos_embed.frequencies" || parameter == "pos_embed" ||
         parameter == "cls_token" || parameter == "reg_token" || parameter == "dist_token";
}

bool VisionTransformer::is_head(const std::string& parameter) const {
  return parameter.starts_with("head.") || parameter.starts_with("head_dist.");
}

Tensor VisionTransformer::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                                const Size2& source) const {
  constexpr std::string_view backbone = "patch_embed.backbone.";
  if (parameter.starts_with(backbone) && is_first_convolution(std::string_view(parameter).substr(backbone.size()))) {
    return with_channels(value, config_.in_chans);
  }
  if (parameter == "patch_embed.proj.weight" && !config_.backbone) {
    const Shape& own = patch_embed_->proj.weight.shape();
    Tensor weight = value;
    if (weight.rank() == 2 &&
        weight.size(1) % (own[2] * own[3]) == 0) {  // the weight is that of a linear patch embedding
      weight = weight.reshape({weight.size(0), -1, own[2], own[3]});
    }
    return with_channels(weight, own[1]);
  }
  const Size2 home = grid(config_.img_size[0], config_.img_size[1]);
  if (parameter == "pos_embed" && value.rank() == 3 && value.size(1) > position_prefix()) {
    const Size2 from = source_grid(value.size(1) - position_prefix(), feature_size(source), config_.patch_size);
    return positions_->adapt(value, from);
  }
  const std::int64_t extra = prefix() > 0 ? 3 : 0;
  if (parameter.ends_with("relative_position_bias_table") && value.rank() == 2 && value.size(0) > extra) {
    const Size2 features = feature_size(source);
    const Size2 from = {features[0] / config_.patch_size[0], features[1] / config_.patch_size[1]};
    const bool known = (2 * from[0] - 1) * (2 * from[1] - 1) + extra == value.size(0);
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(value.size(0) - extra))) / 2 + 1;
    const bool as_hub = config_.pos_embed_resize == VitConfig::PositionResize::transformers;
    return (as_hub ? nn::interpolate_bias_table : nn::resample_bias_table)(value, known ? from : Size2{side, side},
                                                                           home);
  }
  return value;
}

}  // namespace vitrail::models
