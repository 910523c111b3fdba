// Multi-head attention (Vaswani et al. 2017) with its projections.
#pragma once

#include <cstdint>
#include <optional>

#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/rotary.h"

namespace vitrail::nn {

struct AttentionConfig {
  std::int64_t dim = 0;          // of the input (of the queries' input in cross-attention)
  std::int64_t context_dim = 0;  // of the keys' and values' input in cross-attention; 0: dim
  std::int64_t num_heads = 8;
  std::int64_t key_dim = 0;    // of a head's queries and keys; 0: dim / num_heads
  std::int64_t value_dim = 0;  // of a head's values; 0: key_dim
  std::int64_t out_dim = 0;    // of the output; 0: dim
  bool fused = true;           // q, k and v (in cross-attention: k and v) from one product
  bool qkv_bias = false;
  bool k_bias = true;  // without: where there is a qkv_bias, it is of the queries and values alone (BEiT)
  bool proj_bias = true;
  std::optional<NormConfig> qk_norm = std::nullopt;     // of each head's queries and keys
  std::optional<NormConfig> scale_norm = std::nullopt;  // of the joined heads before the output projection
  float attn_drop = 0;                                  // of the probabilities
  float proj_drop = 0;                                  // of the output
  int block = -1;                                       // under which number a recorder gets the map; -1: never
  bool pools = false;                                   // it gets the map as that of attention pooling instead
};

// What one call may add.
struct AttentionExtras {
  Tensor residual = {};  // [..., out_dim], added to the output
  Tensor bias = {};      // f32, broadcastable to [B, H, N, M], added to the scores
  Tensor mask = {};      // boolean, the same shape, true = may attend; or f32, added too (ops::AttentionOptions)
  bool causal = false;
  ops::Rotation rotation = {};               // turns queries and keys, after their norms (self-attention only)
  std::optional<AttentionPlace> place = {};  // where queries and keys lie, for the recorder
};

// Self-attention, timm's Attention: x [B, N, dim] → [B, N, out_dim],
//
//   y = proj(norm(join_h softmax(q_h k_hᵀ / √key_dim + bias) v_h)),   q, k, v = qkv(x), q_h and k_h normed if asked
//   for, and turned if there is a rotation (RoPE).
//
// Parameters: fused, `qkv` [H (2 key_dim + value_dim), dim] in the order q, k, v; apart, `q_proj`, `k_proj` [H key_dim,
// dim] and `v_proj` [H value_dim, dim] (the names of timm's AttentionRope). Fused and without k_bias, the biases are
// `q_bias` [H key_dim] and `v_bias` [H value_dim]. `q_norm`, `k_norm`, `norm`; `proj` [out_dim, H value_dim].
struct Attention {
  Attention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t tokens) const;  // fvcore's count of one sample, the two attention products included

  AttentionConfig config;  // with the zeros filled in
  std::optional<Linear> qkv;
  std::optional<Linear> q_proj;
  std::optional<Linear> k_proj;
  std::optional<Linear> v_proj;
  Tensor q_bias;  // undefined unless fused without k_bias
  Tensor v_bias;
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<Norm> norm;
  Linear proj;

 private:
  Tensor project_qkv(const Tensor& x) const;
};

// Cross-attention: queries from x [B, N, dim], keys and values from context [B, M, context_dim] → [B, N, out_dim], by
// the equation above. Parameters: `q` [H key_dim, dim]; fused, `kv` [H (key_dim + value_dim), context_dim]; apart, `k`
// and `v`; `q_norm`, `k_norm`, `norm`, `proj` (the names of timm's AttentionPoolLatent).
struct CrossAttention {
  CrossAttention(const Scope& scope, const AttentionConfig& config);
  Tensor operator()(const Tensor& x, const Tensor& context, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t queries, std::int64_t keys) const;

  AttentionConfig config;  // with the zeros filled in
  Linear q;
  std::optional<Linear> kv;
  std::optional<Linear> k;
  std::optional<Linear> v;
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<Norm> norm;
  Linear proj;
};

}  // namespace vitrail::nn
