/// \file
/// Multi-head attention (Vaswani et al. 2017) with its projections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/attention/rotary.h"

namespace vitrail::nn {

/// The names of the parameters of attention, except those of its norms.
struct AttentionNames {
  std::string qkv = "qkv";  ///< of the fused projection
  std::string q = "q_proj";
  std::string k = "k_proj";
  std::string v = "v_proj";
  std::string proj = "proj";
  /// As in torch.nn.MultiheadAttention: q, k and v come from the parameters `in_proj_weight` [3 D, D] and
  /// `in_proj_bias` [3 D], also in cross-attention, whose context is then as wide as its input. Only for fused
  /// projections.
  bool in_proj = false;
};

/// The sizes and parts of Attention or CrossAttention.
struct AttentionConfig {
  std::int64_t dim = 0;          ///< width of the input (in cross-attention, of the input of the queries)
  std::int64_t context_dim = 0;  ///< in cross-attention, width of the input of keys and values; 0: dim
  std::int64_t num_heads = 8;
  std::int64_t key_dim = 0;    ///< width of a head's queries and keys; 0: dim / num_heads
  std::int64_t value_dim = 0;  ///< width of a head's values; 0: key_dim
  std::int64_t out_dim = 0;    ///< width of the output; 0: dim
  bool fused = true;           ///< q, k and v (in cross-attention: k and v) from one product
  bool qkv_bias = false;
  bool k_bias = true;  ///< false: if there is a qkv_bias, only queries and values have it (BEiT)
  bool proj_bias = true;
  std::optional<NormConfig> qk_norm = std::nullopt;     ///< of the queries and keys of each head
  std::optional<NormConfig> scale_norm = std::nullopt;  ///< of the joined heads, before proj
  float attn_drop = 0;                                  ///< dropout of the probabilities
  float proj_drop = 0;                                  ///< dropout of the output
  bool pools = false;                                   ///< a recorder gets the map as one of attention pooling
  WeightLayout layout = WeightLayout::out_in;           ///< of the weights, except in_proj

  /// Unset: the names of timm's Attention and AttentionRope; for cross-attention those of its AttentionPoolLatent, `q`,
  /// and `kv` or `k` and `v`.
  std::optional<AttentionNames> names = std::nullopt;
};

/// The optional arguments of one call, which ops::AttentionOptions describes in more detail.
struct AttentionExtras {
  Tensor residual = {};  ///< [..., out_dim], added to the output
  Tensor bias = {};      ///< f32, broadcastable to [B, H, N, M], added to the scores
  Tensor mask = {};      ///< of the same shape: boolean (true: may attend) or f32, added to the scores
  bool causal = false;
  Tensor lengths = {};                         ///< i64 [B]: how many keys of each sample are real; undefined: all
  std::int64_t windows = 0;                    ///< how many each image of the batch is cut into; 0: no windows
  ops::Rotation rotation = {};                 ///< rotates queries and keys, after their norms (self-attention only)
  std::shared_ptr<const TokenGrid> grid = {};  ///< positions of queries and keys, for the recorder
};

/// Self-attention, timm's Attention: x [B, N, dim] → [B, N, out_dim],
///
/// ```text
/// y = proj(norm(join_h softmax(q_h k_hᵀ / √key_dim + bias) v_h)),   q, k, v = qkv(x).
/// ```
///
/// q_h and k_h are normalized if there is a qk_norm, and rotated if there is a rotation (RoPE).
///
/// Parameters, unless the config has other names: if fused, `qkv` [H (2 key_dim + value_dim), dim] in the order q, k,
/// v; otherwise `q_proj`, `k_proj` [H key_dim, dim] and `v_proj` [H value_dim, dim]. If fused and without k_bias, the
/// biases are `q_bias` [H key_dim] and `v_bias` [H value_dim]. Further `q_norm`, `k_norm`, `norm` and `proj` [out_dim,
/// H value_dim].
struct Attention {
  Attention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t tokens) const;  ///< fvcore's count for one sample, with both attention products

  AttentionConfig config;  ///< with defaults in place of zeros
  std::string name;        ///< path of the layer, under which a recorder gets the map
  std::optional<Linear> qkv;
  std::optional<Linear> q_proj;
  std::optional<Linear> k_proj;
  std::optional<Linear> v_proj;
  Tensor q_bias;  ///< undefined unless fused without k_bias
  Tensor v_bias;
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<Norm> norm;
  Linear proj;

 private:
  Tensor project_qkv(const Tensor& x) const;
};

/// Cross-attention by the equation of Attention: queries come from x [B, N, dim], keys and values from context [B, M,
/// context_dim] → [B, N, out_dim]. Parameters, unless the config has other names: `q` [H key_dim, dim]; if fused, `kv`
/// [H (key_dim + value_dim), context_dim], otherwise `k` and `v`; `q_norm`, `k_norm`, `norm`, `proj`.
struct CrossAttention {
  CrossAttention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, const Tensor& context, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t queries, std::int64_t keys) const;

  AttentionConfig config;         ///< with defaults in place of zeros
  std::string name;               ///< path of the layer, under which a recorder gets the map
  std::optional<Linear> in_proj;  ///< replaces the next four: rows of the queries, then of keys and values
  std::optional<Linear> q;
  std::optional<Linear> kv;
  std::optional<Linear> k;
  std::optional<Linear> v;
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<Norm> norm;
  Linear proj;
};

}  // namespace vitrail::nn
