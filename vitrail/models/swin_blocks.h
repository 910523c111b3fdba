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

  nn::Size2 pretrained_window = {0, 0};  // Swin V2: the window that the positions' scale is made for; 0: its own
  float norm_weight = 1;                 // Swin V2-CR: what the weights of norm1 and norm2 start from
  bool extra_norm = false;               // Swin V2-CR: norm3
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

// Attention whose scores are cosines (Swin V2: Liu et al. 2022, eq. 2): with q, k and v from one packed projection qkv
// [B W, n, 3 H d],
//   softmax(min(e^logit_scale, 100) cos(q, k) + bias + mask) v                                     [B W, n, H d]
struct CosineAttention {
  CosineAttention(const SwinBlockConfig& config, const Tensor& scale)
      : num_heads(config.num_heads), drop(config.attn_drop), index(config.index), logit_scale(scale) {}
  Tensor operator()(const Tensor& qkv, nn::Pass& pass, const nn::AttentionExtras& extras) const;
  // fvcore's count for windows of so many tokens, the projections not included.
  std::int64_t flops(std::int64_t tokens, std::int64_t dim) const { return 2 * tokens * tokens * dim; }

  std::int64_t num_heads;
  float drop;
  int index;           // for the recorder
  Tensor logit_scale;  // one for each head
};

// timm's WindowAttention of Swin V2: x [B W, n, C] → [B W, n, C]. The bias of the scores comes from a small network of
// the offset on a logarithmic scale, 16 σ(cpb_mlp(log_offsets)), which serves windows of every size. Keys have no bias.
// Parameters `logit_scale` [H, 1, 1], `cpb_mlp.0` [512, 2], `cpb_mlp.2` [H, 512], `qkv.weight` [3 C, C], with qkv_bias
// `q_bias` and `v_bias` [C], and `proj` [C, C].
struct SwinV2Attention {
  SwinV2Attention(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask, const nn::AttentionPlace& place) const;
  Tensor bias() const;  // [1, H, n, n] f32
  std::int64_t flops(std::int64_t tokens, std::int64_t windows) const;

  CosineAttention attend;
  nn::Linear cpb_hidden;
  nn::Linear cpb_out;
  nn::Linear qkv;
  Tensor q_bias;  // undefined without
  Tensor v_bias;
  nn::Linear proj;
  nn::Dropout proj_drop;
  nn::Size2 window;
  Tensor offsets;  // of its pairs of tokens, on a logarithmic scale
};

// Swin Transformer V2 (Liu et al. 2022, figure 1), timm's SwinTransformerV2Block: the norms stand behind their
// branches, and start at 0:
//   x = x + drop_path(norm1(attention within the windows of x))
//   x = x + drop_path(norm2(mlp(x)))
struct SwinV2Block {
  SwinV2Block(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask) const;
  std::int64_t flops(const nn::Size2& grid) const;

  ops::Windows windows;
  SwinV2Attention attn;
  nn::Norm norm1;
  nn::Mlp mlp;
  nn::Norm norm2;
  nn::DropPath drop_path;
};

// The same in timm's SwinTransformerV2Cr (by Christoph Reich): q, k and v have biases, and the bias of the scores is
// meta_mlp(sign(Δ) log(1 + |Δ|)), whose hidden units are dropped with probability 1/8 in training, for every pair of
// tokens on its own. Parameters `qkv` [3 C, C], `proj` [C, C], `meta_mlp.fc1` [384, 2], `meta_mlp.fc2` [H, 384] and
// `logit_scale` [H].
struct SwinV2CrAttention {
  SwinV2CrAttention(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask, const nn::AttentionPlace& place) const;
  Tensor bias(nn::Pass& pass) const;  // [1, H, n, n] f32
  std::int64_t flops(std::int64_t tokens, std::int64_t windows) const;

  nn::Linear qkv;
  nn::Linear proj;
  nn::Dropout proj_drop;
  nn::Linear meta_hidden;
  nn::Linear meta_out;
  nn::Dropout meta_drop;
  CosineAttention attend;
  nn::Size2 window;
  Tensor offsets;  // of its pairs of tokens, on a logarithmic scale
};

// timm's SwinTransformerV2CrBlock: as SwinV2Block, and where asked for a norm3 of the sum behind it.
struct SwinV2CrBlock {
  SwinV2CrBlock(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& mask) const;
  std::int64_t flops(const nn::Size2& grid) const;

  ops::Windows windows;
  SwinV2CrAttention attn;
  nn::Norm norm1;
  nn::Mlp mlp;
  nn::Norm norm2;
  std::optional<nn::Norm> norm3;
  nn::DropPath drop_path;
};

}  // namespace vitrail::models
