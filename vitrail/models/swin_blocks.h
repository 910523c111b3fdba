// The blocks of Swin transformers: attention within windows, shifted in every second block.
#pragma once

#include <cstdint>
#include <optional>

#include "vitrail/nn/attention.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/position.h"
#include "vitrail/nn/windows.h"

namespace vitrail::models {

struct SwinBlockConfig {
  std::int64_t dim = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;  // 0: dim / num_heads
  ops::Windows windows = {};
  double mlp_ratio = 4;
  bool qkv_bias = true;
  ops::Activation activation = ops::Activation::gelu;
  nn::NormConfig norm = {};
  float proj_drop = 0;
  float attn_drop = 0;
  float drop_path = 0;
  int index = 0;  // among all blocks of the model
};

// Swin Transformer (Liu et al. 2021, eq. 3), timm's SwinTransformerBlock: x [B, H, W, C] → [B, H, W, C],
//   x = x + drop_path(attention within the windows of norm1(x))
//   x = x + drop_path(mlp(norm2(x)))
// with a learned bias of the scores for each head and offset, `attn.relative_position_bias_table`, and `mask`
// (nn::shift_mask) where the windows are shifted. The tokens with which windows are filled up are attended to, as in
// the reference.
struct SwinBlock {
  SwinBlock(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask) const;
  std::int64_t flops(const nn::Size2& grid) const;

  ops::Windows windows;
  nn::Norm norm1;
  nn::RelPosBias rel_pos;
  nn::Attention attn;
  nn::Norm norm2;
  nn::Mlp mlp;
  nn::DropPath drop_path;
};

}  // namespace vitrail::models
