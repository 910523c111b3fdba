/// \file
/// Multi-head attention (Vaswani et al. 2017) with its projections.
#pragma once

#include <cstdint>
#include <optional>

#include "vitrail/nn/attention/attention_config.h"
#include "vitrail/nn/attention/heads.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"

namespace vitrail::nn {

/// Self-attention, timm's Attention: x [B, N, dim] → [B, N, out_dim],
///
/// ```text
/// y = proj(norm(join_h softmax(q_h k_hᵀ / √key_dim + bias) v_h)),   q, k, v = qkv(x).
/// ```
///
/// q_h and k_h are normalized if there is a qk_norm, and rotated if there is a rotation (RoPE). With a lambda_init it
/// is timm's DiffAttention, whose heads AttentionHeads describes.
///
/// Parameters, unless the config has other names: if fused, `qkv` [H (2 key_dim + value_dim), dim] in the order q, k,
/// v, or by head; otherwise `q_proj`, `k_proj` [H key_dim, dim] and `v_proj` [H value_dim, dim]. With num_kv_heads,
/// keys and values have G in place of H heads. If fused and without k_bias, the biases are `q_bias` [H key_dim] and
/// `v_bias` [H value_dim]. Further `q_norm`, `k_norm`, `norm` and `proj` [out_dim, H value_dim].
struct Attention {
  Attention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t tokens) const;  ///< fvcore's count for one sample, with both attention products

  AttentionConfig config;  ///< with defaults in place of zeros
  std::optional<Linear> qkv;
  std::optional<Linear> q_proj;
  std::optional<Linear> k_proj;
  std::optional<Linear> v_proj;
  Tensor q_bias;  ///< undefined unless fused without k_bias
  Tensor v_bias;
  AttentionHeads heads;
  std::optional<Norm> norm;
  Linear proj;

 private:
  Tensor project_qkv(const Tensor& x) const;
};

/// What CrossAttention keeps of a context: keys [B, M, H key_dim] and values [B, M, H value_dim].
struct Memory {
  Tensor keys;
  Tensor values;
};

/// Cross-attention by the equation of Attention: queries come from x [B, N, dim], keys and values from context [B, M,
/// context_dim] → [B, N, out_dim]. Parameters, unless the config has other names: `q` [H key_dim, dim]; if fused, `kv`
/// [H (key_dim + value_dim), context_dim], otherwise `k` and `v`; `q_norm`, `k_norm`, `norm`, `proj`.
struct CrossAttention {
  CrossAttention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, const Tensor& context, Pass& pass, const AttentionExtras& extras = {}) const {
    return attend(x, remember(context), pass, extras);
  }
  /// The keys and values of a context, for attend(): a decoder asks the same ones at each step.
  Memory remember(const Tensor& context) const;
  Tensor attend(const Tensor& x, const Memory& memory, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t queries, std::int64_t keys) const;

  AttentionConfig config;         ///< with defaults in place of zeros
  std::optional<Linear> in_proj;  ///< replaces the next four: rows of the queries, then of keys and values
  std::optional<Linear> q;
  std::optional<Linear> kv;
  std::optional<Linear> k;
  std::optional<Linear> v;
  AttentionHeads heads;
  std::optional<Norm> norm;
  Linear proj;
};

}  // namespace vitrail::nn
