#include "vitrail/models/vit/vit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/models/vit/vit_init.h"
#include "vitrail/nn/attention/block_names.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

// How many pixels of the image correspond to one pixel of what is cut into patches, along a side.
std::int64_t backbone_stride(const VitConfig& c) { return c.backbone ? hybrid_stride(*c.backbone) : 1; }

bool has_conv_stem(const VitConfig& c) { return c.backbone && std::holds_alternative<ConvStemConfig>(*c.backbone); }

// The size of an image of one patch; an image whose sides are multiples of it consists of whole patches.
Size2 one_patch(const VitConfig& c) {
  const std::int64_t stride = backbone_stride(c);
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
  // The approximate number of multiply-accumulates for one image; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  const double tokens =
      pixels / (std::pow(real(backbone_stride(c)), 2) * real(c.patch_size[0]) * real(c.patch_size[1]));
  const double block = tokens * (tokens + (4 + 3 * c.mlp_ratio) * real(c.embed_dim)) * real(c.embed_dim);
  const double cost = pixels * real(c.in_chans) * real(c.embed_dim) + block * real(c.depth);
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and depth {} would take {:.0e} FLOPs for an image",
        c.img_size[0], c.img_size[1], c.embed_dim, c.depth, cost);
  if (c.backbone) {
    check(!c.dynamic_img_pad && !c.distilled && !c.pre_norm && !c.embed_norm_layer,
          "a hybrid has no dynamic_img_pad, pre_norm, embed_norm_layer or distillation token");
    check(!has_conv_stem(c) || (c.patch_size[0] == 1 && c.patch_size[1] == 1),
          "the pixels behind a convolutional stem are the tokens: patch_size must be 1, not {}x{}", c.patch_size[0],
          c.patch_size[1]);
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

VisionTransformer::VisionTransformer(const nn::Scope& scope, const VitConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(vit_init_rule(config_));
  const std::int64_t dim = config_.embed_dim;
  const bool beit = config_.kind == VitConfig::Kind::beit || config_.kind == VitConfig::Kind::eva;
  const nn::Init small = beit ? nn::Init::trunc_normal(0.02F) : nn::Init::normal(1e-6F);
  const nn::Scope embedding = root / "patch_embed";
  std::int64_t embedded = config_.in_chans;
  if (const auto& backbone = config_.backbone) {
    backbone_.emplace(embedding / "backbone", *backbone);
    embedded = backbone_->out_channels();
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
  if (!has_conv_stem(config_)) {
    patch_embed_.emplace(embedding, config_.patch_size, embedded, dim, !config_.pre_norm);
  }
  if (config_.embed_norm_layer) {
    patch_norm_.emplace(embedding / "norm", dim, *config_.embed_norm_layer);
  }
  norm_pre_ = norm_if(config_.pre_norm, root / "norm_pre");
  if (config_.rel_pos_type && config_.shared_rel_pos) {
    shared_rel_pos_.emplace(root / (beit ? "rel_pos_bias" : "shared_rel_pos"), rel_pos_config());
  }
  if (config_.rope && config_.depth > 0) {
    rope_.emplace(root / "rope", rope_config());
  }
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(root / "blocks" / i, config_.block_kind, block_config(i));
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
          .sigma = config_.fourier_sigma,
          .resize = config_.pos_embed_resize};
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
  rope.head_dim = config_.embed_dim / config_.num_heads / (config_.differential ? 2 : 1);
  rope.prefix = prefix();
  return rope;
}

nn::AttentionConfig VisionTransformer::attention_config(std::int64_t index) const {
  const VitConfig& c = config_;
  nn::AttentionConfig attention = {.dim = c.embed_dim,
                                   .num_heads = c.num_heads,
                                   .fused = c.qkv_fused,
                                   .qkv_bias = c.qkv_bias,
                                   .k_bias = c.k_bias,
                                   .proj_bias = c.proj_bias,
                                   .attn_drop = static_cast<float>(c.attn_drop_rate),
                                   .proj_drop = static_cast<float>(c.proj_drop_rate)};
  if (c.qk_norm) {
    attention.qk_norm = c.norm_layer;
  }
  if (c.scale_attn_norm) {
    attention.scale_norm = c.norm_layer;
  }
  if (c.differential) {  // Ye et al. 2025, section 2.1, with blocks counted from 0
    attention.lambda_init = static_cast<float>(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(index)));
  }
  return attention;
}

nn::BlockConfig VisionTransformer::block_config(std::int64_t index) const {
  const VitConfig& c = config_;
  const auto drop = static_cast<float>(c.proj_drop_rate);
  nn::BlockConfig block;
  block.attention = attention_config(index);
  block.mlp_kind = c.mlp_layer;
  block.mlp = {.dim = c.embed_dim,
               .hidden = c.mlp_hidden > 0 ? c.mlp_hidden
                                          : static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio),
               .activation = c.act_layer,
               .fc1_bias = c.proj_bias,
               .fc2_bias = c.proj_bias,
               .norm = c.scale_mlp_norm ? std::optional(c.norm_layer) : std::nullopt,
               .drop1 = drop,
               .drop2 = drop};
  block.norm = c.norm_layer;
  block.norm_place = c.post_norm ? nn::NormPlace::res_post : nn::NormPlace::pre;
  // For timm's Block and ParallelThingsBlock, 0 means no layer scale; for its other blocks, 0 is the initial value.
  const bool zero_is_none =
      !c.post_norm && c.kind != VitConfig::Kind::eva && c.block_kind != nn::BlockKind::parallel_scaling;
  block.init_values = c.init_values == 0.0F && zero_is_none ? std::nullopt : c.init_values;
  block.drop_path =
      c.depth > 1 ? static_cast<float>(c.drop_path_rate * static_cast<double>(index) / static_cast<double>(c.depth - 1))
                  : 0.0F;
  if (c.kind == VitConfig::Kind::eva || c.kind == VitConfig::Kind::beit) {
    block = nn::named_as_beit(std::move(block));
  }
  if (c.rel_pos_type && (!c.shared_rel_pos || c.both_rel_pos)) {
    block.rel_pos = rel_pos_config();
  }
  return block;
}

Size2 VisionTransformer::feature_size(const Size2& image) const {
  return backbone_ ? backbone_->output_size(image) : image;
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

// Embeds the patches: x [B, C, H, W] → [B, rows · columns, D] in the pass's dtype.
Tensor VisionTransformer::patches(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4, "the model takes images [B, {}, H, W], not {}", config_.in_chans, x.shape());
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  if (!config_.dynamic_img_size) {
    check(height == config_.img_size[0] && width == config_.img_size[1],
          "the model takes images of {}x{} (img_size), not of {}x{}", config_.img_size[0], config_.img_size[1], height,
          width);
  } else if (!config_.dynamic_img_pad) {
    const Size2 size = feature_size({height, width});
    const bool whole = size[0] % patch[0] == 0 && size[1] % patch[1] == 0;
    check((whole || config_.dynamic_img_crop) && std::min(size[0] / patch[0], size[1] / patch[1]) > 0,
          "an image of {}x{} is not made of whole patches, as one is whose sides are multiples of {} and {}{}", height,
          width, one_patch(config_)[0], one_patch(config_)[1],
          config_.backbone ? "" : "; dynamic_img_pad would fill it up");
  }
  Tensor input = ops::cast(x, pass.dtype);
  input = backbone_ ? (*backbone_)(input, pass) : input;
  if (config_.dynamic_img_pad) {
    const Size2 cells = grid(height, width);
    input = height % patch[0] == 0 ? input : ops::pad(input, 2, 0, cells[0] * patch[0] - height);
    input = width % patch[1] == 0 ? input : ops::pad(input, 3, 0, cells[1] * patch[1] - width);
  }
  if (!patch_embed_) {  // the pixels are the tokens
    return ops::transpose(ops::reshape(input, {input.size(0), input.size(1), input.size(2) * input.size(3)}), 1, 2);
  }
  const Tensor tokens = (*patch_embed_)(input);
  return patch_norm_ ? (*patch_norm_)(tokens) : tokens;
}

Tensor VisionTransformer::with_prefix(const Tensor& x, const Tensor& positions) const {
  std::vector<Tensor> front;
  for (const Tensor& token : {cls_token_, dist_token_, reg_token_}) {
    if (token.defined()) {
      front.push_back(token);
    }
  }
  if (front.empty()) {
    return x;
  }
  Tensor joined = front.size() == 1 ? front.front() : ops::concat(front, 1);
  if (positions.defined() && position_prefix() > 0) {
    joined = joined + ops::narrow(positions, 1, 0, position_prefix());
  }
  return ops::concat({ops::expand(ops::cast(joined, x.dtype()), {x.size(0), prefix(), config_.embed_dim}), x}, 1);
}

// Embeds an image as tokens with positions: x [B, C, H, W] → [B, N, D].
Tensor VisionTransformer::embed(const Tensor& x, nn::Pass& pass) const {
  Tensor tokens = patches(x, pass);
  const Size2 cells = grid(x.size(2), x.size(3));
  const Tensor positions = token_positions(cells, pass);
  if (positions.defined()) {
    tokens = tokens + ops::cast(ops::narrow(positions, 1, position_prefix(), cells[0] * cells[1]), pass.dtype);
  }
  tokens = with_prefix(tokens, positions);
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
    result[i].bias = blocks_[i].score_bias(pass, result[i].bias);
  }
  return result;
}

Tensor VisionTransformer::run_blocks(Tensor tokens, const Size2& cells, nn::Pass& pass) const {
  const std::vector<ScorePositions> shared = shared_score_positions(cells, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const ScorePositions& positions = shared[std::min(i, shared.size() - 1)];
    const auto run = [&block = blocks_[i], positions](const Tensor& input, nn::Pass& block_pass) {
      return block(input, block_pass, {.bias = positions.bias, .rotation = positions.rotation});
    };
    tokens = nn::run_block(run, tokens, pass);
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "blocks" / static_cast<std::int64_t>(i)).path(), tokens);
    }
  }
  return tokens;
}

// Returns the tokens after the last block, without the final norm.
Tensor VisionTransformer::encode(const Tensor& x, nn::Pass& pass) const {
  Tensor tokens = embed(x, pass);
  return run_blocks(std::move(tokens), grid(x.size(2), x.size(3)), pass);
}

Tensor VisionTransformer::forward_features(const Tensor& x, nn::Pass& pass) const {
  return final_norm(encode(x, pass));
}

// Applies the final norm to token `index` of x [B, N, D] only: [B, D] f32.
Tensor VisionTransformer::read_token(const Tensor& x, std::int64_t index) const {
  return final_norm(ops::cast(ops::select(x, 1, index), DType::f32));
}

// Applies the norm behind the pooling, if there is one.
Tensor VisionTransformer::fc_norm(const Tensor& x) const { return fc_norm_ ? (*fc_norm_)(x) : x; }

// Pools normalized tokens x [B, N, D] → [B, D] f32 ([B, N, D] without pooling).
Tensor VisionTransformer::pooled(const Tensor& x, nn::Pass& pass) const {
  const std::int64_t skipped = config_.pool_include_prefix ? 0 : prefix();
  const Tensor y = attn_pool_ ? (*attn_pool_)(skipped == 0 ? x : ops::narrow(x, 1, skipped, x.size(1) - skipped), pass)
                              : nn::pool_tokens(x, config_.global_pool, skipped);
  return fc_norm(ops::cast(y, DType::f32));
}

// The head runs in f32 whatever the pass's dtype is: it is small, and its rounding errors would go straight into the
// logits.
Tensor VisionTransformer::classify(const Tensor& x, const std::optional<nn::Linear>& head, nn::Pass& pass,
                                   bool pre_logits) const {
  const Tensor dropped = nn::Dropout{static_cast<float>(config_.drop_rate)}(x, pass);
  return head && !pre_logits ? (*head)(dropped) : dropped;
}

Tensor VisionTransformer::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  if (!config_.distilled) {
    return classify(pooled(features, pass), head_, pass, pre_logits);
  }
  const auto token = [&](std::int64_t index) { return ops::cast(ops::select(features, 1, index), DType::f32); };
  return (classify(token(0), head_, pass, pre_logits) + classify(token(1), head_dist_, pass, pre_logits)) * 0.5F;
}

std::vector<Tensor> VisionTransformer::forward_heads(const Tensor& x, nn::Pass& pass) const {
  const Tensor tokens = encode(x, pass);
  if (config_.distilled) {
    return {classify(read_token(tokens, 0), head_, pass, false),
            classify(read_token(tokens, 1), head_dist_, pass, false)};
  }
  const bool reads_token = config_.global_pool == nn::Pool::token;
  const Tensor y = reads_token ? fc_norm(read_token(tokens, 0)) : pooled(final_norm(tokens), pass);
  return {classify(y, head_, pass, false)};
}

Tensor VisionTransformer::forward(const Tensor& x, nn::Pass& pass) const {
  const std::vector<Tensor> heads = forward_heads(x, pass);
  return heads.size() == 1 ? heads.front() : (heads[0] + heads[1]) * 0.5F;
}

}  // namespace vitrail::models
