/// \file
/// The sizes, parts and arguments of attention.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/nn/attention/key_value_cache.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/positions/token_grid.h"
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
  /// Heads of keys and values, each shared by adjacent heads of queries (grouped-query attention: Ainslie et al. 2023);
  /// 0: num_heads.
  std::int64_t num_kv_heads = 0;
  std::int64_t key_dim = 0;    ///< width of a head's queries and keys; 0: dim / num_heads
  std::int64_t value_dim = 0;  ///< width of a head's values; 0: key_dim
  std::int64_t out_dim = 0;    ///< width of the output; 0: dim
  float scale = 0;             ///< the factor of q kᵀ; 0: 1 / √key_dim
  bool fused = true;           ///< q, k and v (in cross-attention: k and v) from one product
  /// The outputs of the fused product lie head by head, q, k and v of the first and so on (Bloom), instead of all
  /// queries before all keys. Self-attention only, with q, k and v of one width and number.
  bool by_head = false;
  bool qkv_bias = false;
  bool k_bias = true;  ///< false: if there is a qkv_bias, only queries and values have it (BEiT)
  bool proj_bias = true;
  std::optional<NormConfig> qk_norm = std::nullopt;     ///< of the queries and keys of each head
  std::optional<NormConfig> scale_norm = std::nullopt;  ///< of the joined heads, before proj
  std::optional<float> lambda_init = std::nullopt;      ///< the λ_init of differential attention; unset: attention
                                                        ///< as usual
  float attn_drop = 0;                                  ///< dropout of the probabilities
  float proj_drop = 0;                                  ///< dropout of the output
  bool pools = false;                                   ///< a recorder gets the map as one of attention pooling
  WeightLayout layout = WeightLayout::out_in;           ///< of the weights, except in_proj

  /// Unset: the names of timm's Attention and AttentionRope; for cross-attention those of its AttentionPoolLatent, `q`,
  /// and `kv` or `k` and `v`.
  std::optional<AttentionNames> names = std::nullopt;
};

/// The factor of q kᵀ of such attention.
inline float scale_of(const AttentionConfig& config) {
  const std::int64_t width = config.key_dim > 0 ? config.key_dim : config.dim / config.num_heads;
  return config.scale != 0 ? config.scale : 1 / std::sqrt(static_cast<float>(width));
}

/// The optional arguments of one call, which ops::AttentionOptions describes in more detail.
struct AttentionExtras {
  Tensor residual = {};  ///< [..., out_dim], added to the output
  Tensor bias = {};      ///< f32, broadcastable to [B, H, N, M], added to the scores
  Tensor mask = {};      ///< of the same shape: boolean (true: may attend) or f32, added to the scores
  /// f32 [H, 2 C + 1], added to the scores by the distances of keys to queries, as in ops::AttentionOptions
  Tensor distance_bias = {};
  bool causal = false;
  Tensor lengths = {};          ///< i64 [B]: how many keys of each sample are real; undefined: all
  Tensor query_offsets = {};    ///< of sequences in one row, as in ops::AttentionOptions
  Tensor key_offsets = {};      ///< of the sequences of the context; undefined: as query_offsets
  std::int64_t windows = 0;     ///< how many each image of the batch is cut into; 0: no windows
  ops::Rotation rotation = {};  ///< rotates queries and keys, after their norms (self-attention only)
  /// Keys and values of the tokens before x, to which those of x are added (self-attention only), in slots that
  /// TextSlots::extend() has given them. With `causal`, token i of x attends to all of them and to those of x up to i.
  KeyValueCache* cache = nullptr;
  std::int64_t window = 0;  ///< where the cache is read as it lies, in place of a mask: tokens in view; 0: all
  std::shared_ptr<const TokenGrid> grid = {};  ///< positions of queries and keys, for the recorder
};

}  // namespace vitrail::nn
