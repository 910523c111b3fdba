#include "vitrail/models/swin_blocks.h"

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
                            .proj_drop = c.proj_drop,
                            .block = c.index}),
      norm2(scope / "norm2", c.dim, c.norm),
      mlp(scope / "mlp", mlp_config(c)),
      drop_path{c.drop_path} {}

Tensor SwinBlock::operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask) const {
  const Size2 grid = grid_of(x);
  const Tensor bias = rel_pos(pass);
  const Tensor y = nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) {
    const Tensor tokens = ops::window_partition(norm1(x), windows);
    return ops::window_reverse(attn(tokens, pass, {.bias = bias, .mask = mask, .place = nn::place_of(grid, windows)}),
                               windows, grid, residual);
  });
  return nn::add_branch(y, drop_path, pass, [&](const Tensor& residual) { return mlp(norm2(y), pass, residual); });
}

std::int64_t SwinBlock::flops(const Size2& grid) const {
  const std::int64_t tokens = grid[0] * grid[1];
  return norm1.flops(tokens) + windows.count(grid) * attn.flops(windows.area()) + norm2.flops(tokens) +
         mlp.flops(tokens);
}

}  // namespace vitrail::models
