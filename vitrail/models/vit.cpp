#include "vitrail/models/vit.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "vitrail/models/vit_init.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

// Pixels of a picture's side for one of what the patches are cut from.
double backbone_stride(const VitConfig& c) {
  return c.backbone ? std::exp2(std::max(2.0, 1.0 + static_cast<double>(c.backbone->layers.size()))) : 1;
}

// A picture of one patch; all whose sides are multiples of its are made of whole patches.
Size2 one_patch(const VitConfig& c) {
  const auto stride = static_cast<std::int64_t>(backbone_stride(c));
  return {c.patch_size[0] * stride, c.patch_size[1] * stride};
}

void check_config(const VitConfig& c) {
  check(c.patch_size[0] > 0 && c.patch_size[1] > 0, "patch_size must be positive, not {}x{}", c.patch_size[0],
        c.patch_size[1]);
  check(c.img_size[0] >= c.patch_size[0] && c.img_size[1] >= c.patch_size[1],
        "img_size {}x{} holds no patch of patch_size {}x{}", c.img_size[0], c.img_size[1], c.patch_size[0],
        c.patch_size[1]);
  check(c.in_chans > 0 && c.embed_dim > 0 && c.num_heads > 0, "in_chans, embed_dim and num_heads must be positive");
  check(c.depth >= 0 && c.num_classes >= 0 && c.reg_tokens >= 0,
        "depth, num_classes and reg_tokens must not be negative");
  check(c.global_pool != nn::Pool::token_avg || !c.fc_norm.value_or(false),
        "global_pool 'token_avg' reads normed tokens: fc_norm cannot be had with it");
  check(c.embed_dim % c.num_heads == 0, "embed_dim {} cannot be divided among num_heads {}", c.embed_dim, c.num_heads);
  check(c.class_token || (c.global_pool != nn::Pool::token && c.global_pool != nn::Pool::token_avg),
        "global_pool '{}' needs the class token (class_token)", name_of(c.global_pool));
  for (const double rate : {c.drop_rate, c.pos_drop_rate, c.proj_drop_rate, c.attn_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // About the multiply-accumulates of a picture, so that all counts that are made of these numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  const double tokens = pixels / (std::pow(backbone_stride(c), 2) * real(c.patch_size[0]) * real(c.patch_size[1]));
  const double block = tokens * (tokens + (4 + 3 * c.mlp_ratio) * real(c.embed_dim)) * real(c.embed_dim);
  const double cost = pixels * real(c.in_chans) * real(c.embed_dim) + block * real(c.depth);
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and depth {} would take {:.0e} FLOPs for a picture",
        c.img_size[0], c.img_size[1], c.embed_dim, c.depth, cost);
  if (c.backbone) {
    check_resnetv2(*c.backbone);
    check(!c.dynamic_img_pad && !c.distilled && !c.pre_norm,
          "a hybrid has no dynamic_img_pad, pre_norm or distillation token");
  }
  if (c.distilled) {
    check(c.global_pool == nn::Pool::token,
          "a distilled model reads its two tokens: global_pool must be 'token', not '{}'", name_of(c.global_pool));
    check(c.reg_tokens == 0 && !c.no_embed_class,
          "a distilled model has no register tokens (reg_tokens), and positions for all its tokens (no_embed_class)");
  }
  if (c.rel_pos_type) {
    check(!c.dynamic_img_size, "relative positions belong to one img_size: dynamic_img_size cannot be had with them");
  }
}

bool pools_patches(nn::Pool pool) {
  return pool == nn::Pool::avg || pool == nn::Pool::max || pool == nn::Pool::avgmax || pool == nn::Pool::sum;
}

}  // namespace

VisionTransformer::VisionTransformer(const VitConfig& config, const nn::StoreOptions& store) : config_(config) {
  check_config(config_);
  parameters = nn::ParameterStore(store);
  parameters.set_init_rule(vit_init_rule(config_));
  const nn::Scope root(parameters);
  const std::int64_t dim = config_.embed_dim;
  const bool beit = config_.kind == VitConfig::Kind::beit || config_.kind == VitConfig::Kind::eva;
  const nn::Init small = beit ? nn::Init::trunc_normal(0.02F) : nn::Init::normal(1e-6F);
  const nn::Scope embedding = root / "patch_embed";
  std::int64_t embedded = config_.in_chans;
  if (const auto& backbone = config_.backbone) {
    const nn::Scope scope = embedding / "backbone";
    if (backbone->layers.empty()) {
      backbone_.emplace<ResNetV2Stem>(scope, *backbone);
    } else {
      backbone_.emplace<ResNetV2Body>(scope, *backbone);
    }
    embedded = backbone->out_channels();
  }
  const Size2 patches = grid(config_.img_size[0], config_.img_size[1]);
  check(patches[0] > 0 && patches[1] > 0,
        "img_size {}x{} leaves no patch of patch_size {}x{} behind the backbone, as {}x{} would", config_.img_size[0],
        config_.img_size[1], config_.patch_size[0], config_.patch_size[1], one_patch(config_)[0],
        one_patch(config_)[1]);
  if (config_.class_token) {
    cls_token_ = root.parameter("cls_token", {1, 1, dim}, small);
  }
  if (config_.reg_tokens > 0) {
    reg_token_ = root.parameter("reg_token", {1, config_.reg_tokens, dim}, small);
  }
  positions_.emplace(root, positions_config());
  if (config_.distilled) {
    dist_token_ = root.parameter("dist_token", {1, 1, dim}, nn::Init::trunc_normal(0.02F));
  }
  patch_embed_.emplace(embedding, config_.patch_size, embedded, dim, !config_.pre_norm);
  norm_pre_ = norm_if(config_.pre_norm, root / "norm_pre");
  if (config_.rel_pos_type && config_.shared_rel_pos) {
    shared_rel_pos_.emplace(root / (beit ? "rel_pos_bias" : "shared_rel_pos"), rel_pos_config());
  }
  if (config_.rope && config_.depth > 0) {
    rope_.emplace(root / "rope", rope_config());
  }
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.push_back(make_block(root / "blocks" / i, i));
  }
  const bool behind_pool = config_.fc_norm.value_or(pools_patches(config_.global_pool));
  norm_ = norm_if(config_.both_norms || (config_.final_norm && !behind_pool), root / "norm");
  if (config_.global_pool == nn::Pool::map) {
    attn_pool_.emplace(root / "attn_pool", attn_pool_config());
  }
  fc_norm_ = norm_if(config_.both_norms || (config_.final_norm && behind_pool), root / "fc_norm");
  if (config_.num_classes > 0) {
    head_.emplace(root / "head", num_features(), config_.num_classes);
    if (config_.distilled) {
      head_dist_.emplace(root / "head_dist", dim, config_.num_classes);
    }
  }
}

std::optional<nn::Norm> VisionTransformer::norm_if(bool wanted, const nn::Scope& scope) const {
  return wanted ? std::optional<nn::Norm>(std::in_place, scope, config_.embed_dim, config_.norm_layer) : std::nullopt;
}

nn::AttentionPoolConfig VisionTransformer::attn_pool_config() const {
  const VitConfig& c = config_;
  return {.dim = c.embed_dim,
          .num_heads = c.attn_pool_num_heads > 0 ? c.attn_pool_num_heads : c.num_heads,
          .mlp_ratio = c.attn_pool_mlp_ratio > 0 ? c.attn_pool_mlp_ratio : c.mlp_ratio,
          .norm = c.norm_layer,
          .activation = c.act_layer};
}

nn::AbsoluteConfig VisionTransformer::positions_config() const {
  return {.kind = config_.pos_embed,
          .grid = grid(config_.img_size[0], config_.img_size[1]),
          .dim = config_.embed_dim,
          .prefix = position_prefix(),
          .gsd = config_.gsd,
          .sigma = config_.fourier_sigma};
}

nn::RelPos::Config VisionTransformer::rel_pos_config() const {
  return {.kind = *config_.rel_pos_type,
          .window = grid(config_.img_size[0], config_.img_size[1]),
          .hidden = config_.rel_pos_dim,
          .prefix = prefix(),
          .num_heads = config_.num_heads};
}

nn::RotaryPositions::Config VisionTransformer::rope_config() const {
  nn::RotaryPositions::Config rope = *config_.rope;
  rope.depth = config_.depth;
  rope.num_heads = config_.num_heads;
  rope.head_dim = config_.embed_dim / config_.num_heads;
  rope.prefix = prefix();
  return rope;
}

nn::BlockConfig VisionTransformer::block_config(std::int64_t index) const {
  const VitConfig& c = config_;
  const auto norm_for = [&](bool wanted) { return wanted ? std::optional(c.norm_layer) : std::nullopt; };
  const auto drop = static_cast<float>(c.proj_drop_rate);
  nn::BlockConfig block;
  block.attention = {.dim = c.embed_dim,
                     .num_heads = c.num_heads,
                     .fused = c.qkv_fused,
                     .qkv_bias = c.qkv_bias,
                     .k_bias = c.k_bias,
                     .proj_bias = c.proj_bias,
                     .qk_norm = norm_for(c.qk_norm),
                     .scale_norm = norm_for(c.scale_attn_norm),
                     .attn_drop = static_cast<float>(c.attn_drop_rate),
                     .proj_drop = drop,
                     .block = static_cast<int>(index)};
  block.mlp_kind = c.mlp_layer;
  block.mlp = {.dim = c.embed_dim,
               .hidden = c.mlp_hidden > 0 ? c.mlp_hidden
                                          : static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio),
               .activation = c.act_layer,
               .fc1_bias = c.proj_bias,
               .fc2_bias = c.proj_bias,
               .norm = norm_for(c.scale_mlp_norm),
               .drop1 = drop,
               .drop2 = drop};
  block.norm = c.norm_layer;
  // timm's Block takes 0 for "no layer scale"; its ResPostBlock and EvaBlock take it as a value.
  const bool zero_is_none = !c.post_norm && c.kind != VitConfig::Kind::eva;
  block.init_values = c.init_values == 0.0F && zero_is_none ? std::nullopt : c.init_values;
  block.drop_path =
      c.depth > 1 ? static_cast<float>(c.drop_path_rate * static_cast<double>(index) / static_cast<double>(c.depth - 1))
                  : 0.0F;
  if (c.kind == VitConfig::Kind::eva || c.kind == VitConfig::Kind::beit) {
    block.names = nn::BlockNames::beit;
  }
  if (c.rel_pos_type && (!c.shared_rel_pos || c.both_rel_pos)) {
    block.rel_pos = rel_pos_config();
  }
  return block;
}

VisionTransformer::AnyBlock VisionTransformer::make_block(const nn::Scope& scope, std::int64_t index) const {
  if (config_.post_norm) {
    return nn::ResPostBlock(scope, block_config(index));
  }
  return nn::Block(scope, block_config(index));
}

Size2 VisionTransformer::feature_size(const Size2& picture) const {
  return std::visit(
      [&]<class Backbone>(const Backbone& backbone) {
        if constexpr (std::is_same_v<Backbone, std::monostate>) {
          return picture;
        } else {
          return backbone.output_size(picture);
        }
      },
      backbone_);
}

Size2 VisionTransformer::grid(std::int64_t height, std::int64_t width) const {
  const Size2& p = config_.patch_size;
  if (config_.dynamic_img_pad) {
    return {(height + p[0] - 1) / p[0], (width + p[1] - 1) / p[1]};
  }
  const Size2 size = feature_size({height, width});
  return {size[0] / p[0], size[1] / p[1]};
}

std::int64_t VisionTransformer::prefix() const {
  return (config_.class_token ? 1 : 0) + (config_.distilled ? 1 : 0) + config_.reg_tokens;
}

std::int64_t VisionTransformer::position_prefix() const { return config_.no_embed_class ? 0 : prefix(); }

// x [B, C, H, W] → [B, rows · columns, D] in the pass's dtype.
Tensor VisionTransformer::patches(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4, "the model takes pictures [B, {}, H, W], not {}", config_.in_chans, x.shape());
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  if (!config_.dynamic_img_size) {
    check(height == config_.img_size[0] && width == config_.img_size[1],
          "the model takes pictures of {}x{} (img_size), not of {}x{}", config_.img_size[0], config_.img_size[1],
          height, width);
  } else if (!config_.dynamic_img_pad) {
    const Size2 size = feature_size({height, width});
    check(size[0] % patch[0] == 0 && size[1] % patch[1] == 0 && size[0] * size[1] > 0,
          "a picture of {}x{} is not made of whole patches, as one is whose sides are multiples of {} and {}{}", height,
          width, one_patch(config_)[0], one_patch(config_)[1],
          config_.backbone ? "" : "; dynamic_img_pad would fill it up");
  }
  Tensor input = ops::cast(x, pass.dtype);
  if (const auto* const stem = std::get_if<ResNetV2Stem>(&backbone_)) {
    input = (*stem)(input, pass);
  } else if (const auto* const body = std::get_if<ResNetV2Body>(&backbone_)) {
    input = (*body)(input, pass, true);
  }
  if (config_.dynamic_img_pad) {
    const Size2 cells = grid(height, width);
    input = height % patch[0] == 0 ? input : ops::pad(input, 2, 0, cells[0] * patch[0] - height);
    input = width % patch[1] == 0 ? input : ops::pad(input, 3, 0, cells[1] * patch[1] - width);
  }
  return (*patch_embed_)(input);
}

// Tokens with their positions: x [B, C, H, W] → [B, N, D].
Tensor VisionTransformer::embed(const Tensor& x, nn::Pass& pass) const {
  const DType dtype = pass.dtype;
  const std::int64_t batch = x.size(0);
  Tensor tokens = patches(x, pass);
  const Size2 cells = grid(x.size(2), x.size(3));
  const Tensor positions = token_positions(cells, pass);
  Tensor prefix_positions;
  if (positions.defined()) {
    const std::int64_t in_front = position_prefix();
    tokens = tokens + ops::cast(ops::narrow(positions, 1, in_front, cells[0] * cells[1]), dtype);
    if (in_front > 0) {
      prefix_positions = ops::narrow(positions, 1, 0, in_front);
    }
  }
  std::vector<Tensor> front;
  for (const Tensor& token : {cls_token_, dist_token_, reg_token_}) {
    if (token.defined()) {
      front.push_back(token);
    }
  }
  if (!front.empty()) {
    Tensor joined = front.size() == 1 ? front.front() : ops::concat(front, 1);
    joined = prefix_positions.defined() ? joined + prefix_positions : joined;
    tokens = ops::concat({ops::expand(ops::cast(joined, dtype), {batch, prefix(), config_.embed_dim}), tokens}, 1);
  }
  if (positions.defined() || config_.kind != VitConfig::Kind::vit) {
    tokens = nn::Dropout{static_cast<float>(config_.pos_drop_rate)}(tokens, pass);
  }
  return norm_pre_ ? (*norm_pre_)(tokens) : tokens;
}

std::vector<ScorePositions> VisionTransformer::shared_score_positions(const Size2& cells, nn::Pass& pass) const {
  Tensor bias;
  if (config_.alibi) {
    bias = nn::alibi_bias(*config_.alibi, cells, config_.num_heads, prefix());
  } else if (shared_rel_pos_) {
    bias = (*shared_rel_pos_)(pass);
  }
  std::vector<ScorePositions> result;
  for (const ops::Rotation& rotation : rope_ ? (*rope_)(cells) : std::vector<ops::Rotation>(1)) {
    result.push_back({bias, rotation});
  }
  return result;
}

std::vector<ScorePositions> VisionTransformer::score_positions(const Size2& cells, nn::Pass& pass) const {
  std::vector<ScorePositions> result = shared_score_positions(cells, pass);
  result.resize(blocks_.size(), result.front());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    result[i].bias = std::visit([&](const auto& block) { return block.score_bias(pass, result[i].bias); }, blocks_[i]);
  }
  return result;
}

Tensor VisionTransformer::run_block(std::size_t index, const Tensor& x, nn::Pass& pass,
                                    const ScorePositions& positions) const {
  const auto run = [&block = blocks_[index], positions](const Tensor& input, nn::Pass& block_pass) {
    return std::visit([&](const auto& b) { return b(input, block_pass, positions.bias, positions.rotation); }, block);
  };
  return nn::run_block(run, x, pass);
}

// The tokens after the last block.
Tensor VisionTransformer::encode(const Tensor& x, nn::Pass& pass) const {
  Tensor tokens = embed(x, pass);
  const std::vector<ScorePositions> positions = shared_score_positions(grid(x.size(2), x.size(3)), pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    tokens = run_block(i, tokens, pass, positions[std::min(i, positions.size() - 1)]);
    if (pass.recorder != nullptr && pass.recorder->wants_features()) {
      pass.recorder->feature(static_cast<int>(i), tokens);
    }
  }
  return tokens;
}

Tensor VisionTransformer::normed(const Tensor& tokens) const { return norm_ ? (*norm_)(tokens) : tokens; }

Tensor VisionTransformer::forward_features(const Tensor& x, nn::Pass& pass) const { return normed(encode(x, pass)); }

// Token `index` of x [B, N, D], normed: [B, D] f32. The norm sees this token alone.
Tensor VisionTransformer::read_token(const Tensor& x, std::int64_t index) const {
  return normed(ops::cast(ops::select(x, 1, index), DType::f32));
}

// x [B, N, D] after the last block → [B, D] f32 ([B, N, D] without pooling), normed before or after the pooling.
Tensor VisionTransformer::pooled(const Tensor& x, nn::Pass& pass) const {
  const std::int64_t skipped = config_.pool_include_prefix ? 0 : prefix();
  Tensor y;
  if (config_.global_pool == nn::Pool::token) {
    y = read_token(x, 0);
  } else if (attn_pool_) {
    const Tensor tokens = normed(x);
    y = (*attn_pool_)(skipped == 0 ? tokens : ops::narrow(tokens, 1, skipped, x.size(1) - skipped), pass);
  } else {
    y = nn::pool_tokens(normed(x), config_.global_pool, skipped);
  }
  y = ops::cast(y, DType::f32);
  return fc_norm_ ? (*fc_norm_)(y) : y;
}

// The head runs in f32 whatever the pass's dtype: it is small, and its rounding would go straight into the logits.
Tensor VisionTransformer::classify(const Tensor& x, const std::optional<nn::Linear>& head, nn::Pass& pass) const {
  const Tensor dropped = nn::Dropout{static_cast<float>(config_.drop_rate)}(x, pass);
  return head ? (*head)(dropped) : dropped;
}

std::vector<Tensor> VisionTransformer::forward_heads(const Tensor& x, nn::Pass& pass) const {
  const Tensor tokens = encode(x, pass);
  if (!config_.distilled) {
    return {classify(pooled(tokens, pass), head_, pass)};
  }
  return {classify(read_token(tokens, 0), head_, pass), classify(read_token(tokens, 1), head_dist_, pass)};
}

Tensor VisionTransformer::forward(const Tensor& x, nn::Pass& pass) const {
  const std::vector<Tensor> heads = forward_heads(x, pass);
  return heads.size() == 1 ? heads.front() : (heads[0] + heads[1]) * 0.5F;
}

}  // namespace vitrail::models
