/// \file
/// The blocks of Swin transformers: attention within windows, shifted in every second block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/images/windows.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/positions/position.h"

namespace vitrail::models {

/// The configuration of a block of any version.
struct SwinBlockConfig {
  std::int64_t dim = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;  ///< 0: dim / num_heads
  ops::Windows windows = {};
  double mlp_ratio = 4;
  bool qkv_bias = true;
  ops::Activation activation = ops::Activation::gelu;
  nn::NormConfig norm = {};
  float proj_drop = 0;
  float attn_drop = 0;
  float drop_path = 0;

  nn::Size2 pretrained_window = {0, 0};  ///< Swin V2: the window that scales the relative positions; 0: its own
  float norm_weight = 1;                 ///< Swin V2-CR: initial weights of norm1 and norm2
  bool extra_norm = false;               ///< Swin V2-CR: the block has norm3
};

/// The windows of one pass of a block: its own, or those without a shift where the grid is as small as a window. `mask`
/// (nn::shift_mask) is undefined if they are not shifted.
struct MaskedWindows {
  ops::Windows windows;
  Tensor mask;
};

/// The block of Swin Transformer (Liu et al. 2021, eq. 3), timm's SwinTransformerBlock, maps x [B, H, W, C] to
/// [B, H, W, C]:
///
/// ```text
/// x = x + drop_path(attention within the windows of norm1(x))
/// x = x + drop_path(mlp(norm2(x)))
/// ```
///
/// The scores have a learned bias for each head and offset, `attn.relative_position_bias_table`, and, if the windows
/// are shifted, the `mask` (MaskedWindows). The tokens that pad windows are attended to, as in the reference.
struct SwinBlock {
  SwinBlock(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const;
  std::int64_t flops(const nn::Size2& grid, const ops::Windows& on) const;

  ops::Windows windows;
  nn::Norm norm1;
  nn::RelPosBias rel_pos;
  nn::Attention attn;
  nn::Norm norm2;
  nn::Mlp mlp;
  nn::DropPath drop_path;
};

/// Attention whose scores are cosines (Swin V2: Liu et al. 2022, eq. 2): for q, k and v of one packed projection qkv
/// [B W, n, 3 H d], it is
///
/// ```text
/// softmax(min(e^logit_scale, 100) cos(q, k) + bias + mask) v                                     [B W, n, H d]
/// ```
struct CosineAttention {
  CosineAttention(const nn::Scope& scope, const SwinBlockConfig& config, const Tensor& scale)
      : num_heads(config.num_heads), drop(config.attn_drop), name(scope.path()), logit_scale(scale) {}
  Tensor operator()(const Tensor& qkv, nn::Pass& pass, const nn::AttentionExtras& extras) const;
  /// fvcore's FLOPs for windows of `tokens` tokens, without the projections.
  std::int64_t flops(std::int64_t tokens, std::int64_t dim) const { return 2 * tokens * tokens * dim; }

  std::int64_t num_heads;
  float drop;
  std::string name;    ///< path of the layer, by which a recorder gets the attention map
  Tensor logit_scale;  ///< one scale for each head
};

/// timm's WindowAttention of Swin V2: x [B W, n, C] → [B W, n, C]. A small network computes the bias of the scores from
/// the offset between two tokens on a logarithmic scale, 16 σ(cpb_mlp(log_offsets)), so that it serves windows of every
/// size. The keys have no bias. The parameters are `logit_scale` [H, 1, 1], `cpb_mlp.0` [512, 2], `cpb_mlp.2` [H, 512],
/// `qkv.weight` [3 C, C], `proj` [C, C] and, with qkv_bias, `q_bias` and `v_bias` [C].
struct SwinV2Attention {
  SwinV2Attention(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const nn::AttentionExtras& extras) const;
  Tensor bias() const;  ///< [1, H, n, n] f32
  std::int64_t flops(std::int64_t tokens, std::int64_t windows) const;

  CosineAttention attend;
  nn::Linear cpb_hidden;
  nn::Linear cpb_out;
  nn::Linear qkv;
  Tensor q_bias;  ///< undefined without qkv_bias, as v_bias
  Tensor v_bias;
  nn::Linear proj;
  nn::Dropout proj_drop;
  nn::Size2 window;
  Tensor offsets;  ///< between all pairs of tokens of a window, on a logarithmic scale
};

/// The block of Swin Transformer V2 (Liu et al. 2022, figure 1), timm's SwinTransformerV2Block. The norms are at the
/// end of the branches, and their weights start at 0:
///
/// ```text
/// x = x + drop_path(norm1(attention within the windows of x))
/// x = x + drop_path(norm2(mlp(x)))
/// ```
struct SwinV2Block {
  SwinV2Block(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const;
  std::int64_t flops(const nn::Size2& grid, const ops::Windows& on) const;

  ops::Windows windows;
  SwinV2Attention attn;
  nn::Norm norm1;
  nn::Mlp mlp;
  nn::Norm norm2;
  nn::DropPath drop_path;
};

/// The attention of timm's SwinTransformerV2Cr (by Christoph Reich): x [B W, n, C] → [B W, n, C]. Unlike in
/// SwinV2Attention, q, k and v have biases, and the bias of the scores is meta_mlp(sign(Δ) log(1 + |Δ|)) of the offset
/// Δ, computed for every pair of tokens separately; in training its hidden units are dropped with probability 1/8. The
/// parameters are `qkv` [3 C, C], `proj` [C, C], `meta_mlp.fc1` [384, 2], `meta_mlp.fc2` [H, 384] and `logit_scale`
/// [H].
struct SwinV2CrAttention {
  SwinV2CrAttention(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const nn::AttentionExtras& extras) const;
  Tensor bias(nn::Pass& pass) const;  ///< [1, H, n, n] f32
  std::int64_t flops(std::int64_t tokens, std::int64_t windows) const;

  nn::Linear qkv;
  nn::Linear proj;
  nn::Dropout proj_drop;
  nn::Linear meta_hidden;
  nn::Linear meta_out;
  nn::Dropout meta_drop;
  CosineAttention attend;
  nn::Size2 window;
  Tensor offsets;  ///< between all pairs of tokens of a window, on a logarithmic scale
};

/// timm's SwinTransformerV2CrBlock: the formulas are those of SwinV2Block; with extra_norm, norm3 is applied to the
/// result.
struct SwinV2CrBlock {
  SwinV2CrBlock(const nn::Scope& scope, const SwinBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const MaskedWindows& masked) const;
  std::int64_t flops(const nn::Size2& grid, const ops::Windows& on) const;

  ops::Windows windows;
  SwinV2CrAttention attn;
  nn::Norm norm1;
  nn::Mlp mlp;
  nn::Norm norm2;
  std::optional<nn::Norm> norm3;
  nn::DropPath drop_path;
};

}  // namespace vitrail::models
