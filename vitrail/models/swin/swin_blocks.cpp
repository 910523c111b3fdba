#include "vitrail/models/swin/swin_blocks.h"

#include <cmath>
#include <limits>

#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

nn::MlpConfig mlp_config(const SwinBlockConfig& c) {
  return {.dim = c.dim,
          .hidden = static_cast<std::int64_t>(static_cast<double>(c.dim) * c.mlp_ratio),
          .activation = c.activation,
          .drop1 = c.proj_drop,
          .drop2 = c.proj_drop};
}

Size2 grid_of(const Tensor& x) { return {x.size(1), x.size(2)}; }

// What attention within the windows of a grid gets besides the bias of the scores.
nn::AttentionExtras in_windows(const Size2& grid, const MaskedWindows& masked) {
  return {.mask = masked.mask, .windows = masked.windows.count(grid), .grid = nn::grid_of(grid, masked.windows)};
}

constexpr std::int64_t cpb_width = 512;   // hidden width of Swin V2's position network
constexpr std::int64_t meta_width = 384;  // hidden width of Swin V2-CR's position network
const nn::Init log_ten = nn::Init::constant(2.30258509F);

// Computes x + drop_path(norm1(attention)), then x + drop_path(norm2(mlp(x))), which both blocks with norms at the end
// of the branches have in common.
template <class Block>
Tensor post_norm_branches(const Block& block, const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) {
  const Size2 grid = grid_of(x);
  const Tensor y = nn::add_branch(x, block.drop_path, pass, [&](const Tensor& residual) {
    // The norm acts on single tokens, so it may as well be applied before the windows are joined.
    const Tensor tokens = block.attn(ops::window_partition(x, masked.windows), pass, in_windows(grid, masked));
    return ops::window_reverse(block.norm1(tokens), masked.windows, grid, residual);
  });
  return y + block.drop_path(block.norm2(block.mlp(y, pass)), pass);
}

template <class Block>
std::int64_t post_norm_flops(const Block& block, const Size2& grid, const ops::Windows& on) {
  const std::int64_t tokens = grid[0] * grid[1];
  return block.attn.flops(on.area(), on.count(grid)) + block.norm1.flops(tokens) + block.mlp.flops(tokens) +
         block.norm2.flops(tokens);
}

}  // namespace

SwinBlock::SwinBlock(const nn::Scope& scope, const SwinBlockConfig& c)
    : windows(c.windows),
      norm1(scope / "norm1", c.dim, c.norm),
      rel_pos(scope / "attn", c.windows.size, c.num_heads, false),
      attn(scope / "attn", {.dim = c.dim,
                            .num_heads = c.num_heads,
                            .key_dim = c.head_dim,
                            .qkv_bias = c.qkv_bias,
                            .attn_drop = c.attn_drop,
                            .proj_drop = c.proj_drop}),
      norm2(scope / "norm2", c.dim, c.norm),
      mlp(scope / "mlp", mlp_config(c)),
      drop_path{c.drop_path} {}

Tensor SwinBlock::operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const {
  const Size2 grid = grid_of(x);
  nn::AttentionExtras extras = in_windows(grid, masked);
  extras.bias = rel_pos(pass);
  const Tensor y = nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) {
    const Tensor tokens = ops::window_partition(norm1(x), masked.windows);
    return ops::window_reverse(attn(tokens, pass, extras), masked.windows, grid, residual);
  });
  return nn::add_branch(y, drop_path, pass, [&](const Tensor& residual) { return mlp(norm2(y), pass, residual); });
}

std::int64_t SwinBlock::flops(const Size2& grid, const ops::Windows& on) const {
  const std::int64_t tokens = grid[0] * grid[1];
  return norm1.flops(tokens) + on.count(grid) * attn.flops(on.area()) + norm2.flops(tokens) + mlp.flops(tokens);
}

Tensor CosineAttention::operator()(const Tensor& qkv, nn::Pass& pass, const nn::AttentionExtras& extras) const {
  const float largest = std::log(100.0F);
  const Tensor scale =
      ops::exp(ops::clamp(ops::reshape(logit_scale, {num_heads}), -std::numeric_limits<float>::infinity(), largest));
  const std::int64_t dim = qkv.size(2) / 3;
  const Tensor packed =
      ops::cosine_queries(ops::reshape(qkv, {qkv.size(0), qkv.size(1), 3, num_heads, dim / num_heads}), scale);
  ops::AttentionOptions how{.scale = 1, .mask = extras.mask, .bias = extras.bias, .windows = extras.windows};
  if (pass.training && drop > 0) {
    how.dropout = drop;
    how.draws = pass.random.next();
  }
  if (pass.wants_attention()) {
    const auto part = [&](std::int64_t i) { return packed.detach().select(2, i).permute({0, 2, 1, 3}); };
    pass.recorder->attention(name, ops::attention_probabilities(part(0), part(1), how), extras.grid);
  }
  return ops::reshape(ops::attention_packed(packed, how), {qkv.size(0), qkv.size(1), dim});
}

SwinV2Attention::SwinV2Attention(const nn::Scope& scope, const SwinBlockConfig& c)
    : attend(scope, c, scope.parameter("logit_scale", {c.num_heads, 1, 1}, log_ten)),
      cpb_hidden(scope / "cpb_mlp" / 0, 2, cpb_width),
      cpb_out(scope / "cpb_mlp" / 2, cpb_width, c.num_heads, false),
      qkv(scope / "qkv", c.dim, 3 * c.dim, false),
      q_bias(c.qkv_bias ? scope.parameter("q_bias", {c.dim}, nn::Init::zeros()) : Tensor()),
      v_bias(c.qkv_bias ? scope.parameter("v_bias", {c.dim}, nn::Init::zeros()) : Tensor()),
      proj(scope / "proj", c.dim, c.dim),
      proj_drop{c.proj_drop},
      window(c.windows.size),
      offsets(nn::log_offsets(window, c.pretrained_window[0] > 0 ? c.pretrained_window : window)) {}

Tensor SwinV2Attention::bias() const {
  const Tensor table = cpb_out(cpb_hidden(offsets, ops::Activation::relu));
  return nn::bias_at(ops::sigmoid(table) * 16.0F, nn::relative_position_index(window, 0));
}

Tensor SwinV2Attention::operator()(const Tensor& x, nn::Pass& pass, const nn::AttentionExtras& extras) const {
  nn::Linear projection = qkv;
  if (q_bias.defined()) {
    projection.bias = ops::concat({q_bias, Tensor::zeros(q_bias.shape()), v_bias}, 0);
  }
  nn::AttentionExtras all = extras;
  all.bias = bias();
  const Tensor y = attend(projection(x), pass, all);
  return proj_drop(proj(y), pass);
}

std::int64_t SwinV2Attention::flops(std::int64_t tokens, std::int64_t windows) const {
  const std::int64_t entries = offsets.size(0);
  return cpb_hidden.flops(entries) + cpb_out.flops(entries) +
         windows * (qkv.flops(tokens) + attend.flops(tokens, proj.in_features()) + proj.flops(tokens));
}

SwinV2Block::SwinV2Block(const nn::Scope& scope, const SwinBlockConfig& c)
    : windows(c.windows),
      attn(scope / "attn", c),
      norm1(scope / "norm1", c.dim, c.norm, 0),
      mlp(scope / "mlp", mlp_config(c)),
      norm2(scope / "norm2", c.dim, c.norm, 0),
      drop_path{c.drop_path} {}

Tensor SwinV2Block::operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const {
  return post_norm_branches(*this, x, pass, masked);
}

std::int64_t SwinV2Block::flops(const Size2& grid, const ops::Windows& on) const {
  return post_norm_flops(*this, grid, on);
}

SwinV2CrAttention::SwinV2CrAttention(const nn::Scope& scope, const SwinBlockConfig& c)
    : qkv(scope / "qkv", c.dim, 3 * c.dim),
      proj(scope / "proj", c.dim, c.dim),
      proj_drop{c.proj_drop},
      meta_hidden(scope / "meta_mlp" / "fc1", 2, meta_width),
      meta_out(scope / "meta_mlp" / "fc2", meta_width, c.num_heads),
      meta_drop{0.125F},
      attend(scope, c, scope.parameter("logit_scale", {c.num_heads}, log_ten)),
      window(c.windows.size),
      offsets(nn::log_offsets(window)) {}

Tensor SwinV2CrAttention::bias(nn::Pass& pass) const {
  const Tensor hidden = meta_hidden(offsets, ops::Activation::relu);
  const Tensor index = nn::relative_position_index(window, 0);
  if (!meta_drop.active(pass)) {
    return nn::bias_at(meta_out(hidden), index);
  }
  const Tensor pairs = meta_drop(ops::embedding(hidden, index), pass);  // [n, n, 384]
  return ops::unsqueeze(ops::contiguous(ops::permute(meta_out(pairs), {2, 0, 1})), 0);
}

Tensor SwinV2CrAttention::operator()(const Tensor& x, nn::Pass& pass, const nn::AttentionExtras& extras) const {
  nn::AttentionExtras all = extras;
  all.bias = bias(pass);
  const Tensor y = attend(qkv(x), pass, all);
  return proj_drop(proj(y), pass);
}

std::int64_t SwinV2CrAttention::flops(std::int64_t tokens, std::int64_t windows) const {
  const std::int64_t pairs = tokens * tokens;  // the reference runs its network for each pair
  return meta_hidden.flops(pairs) + meta_out.flops(pairs) +
         windows * (qkv.flops(tokens) + attend.flops(tokens, proj.in_features()) + proj.flops(tokens));
}

SwinV2CrBlock::SwinV2CrBlock(const nn::Scope& scope, const SwinBlockConfig& c)
    : windows(c.windows),
      attn(scope / "attn", c),
      norm1(scope / "norm1", c.dim, c.norm, c.norm_weight),
      mlp(scope / "mlp", mlp_config(c)),
      norm2(scope / "norm2", c.dim, c.norm, c.norm_weight),
      norm3(c.extra_norm ? std::optional<nn::Norm>(std::in_place, scope / "norm3", c.dim, c.norm) : std::nullopt),
      drop_path{c.drop_path} {}

Tensor SwinV2CrBlock::operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const {
  const Tensor y = post_norm_branches(*this, x, pass, masked);
  return norm3 ? (*norm3)(y) : y;
}

std::int64_t SwinV2CrBlock::flops(const Size2& grid, const ops::Windows& on) const {
  return post_norm_flops(*this, grid, on) + (norm3 ? norm3->flops(grid[0] * grid[1]) : 0);
}

}  // namespace vitrail::models
