/// \file
/// Pooling of tokens to one vector for the classifier.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"

namespace vitrail::nn {

/// How tokens x [B, N, D] are pooled, by timm's names:
///
/// ```text
/// none ''       all tokens stay: [B, N, D]
/// token         the first token, the class token
/// avg, max      the mean, the maximum over the patches
/// avgmax        (avg + max) / 2
/// token_avg     the first token, followed by the mean over the patches: [B, 2 D] (DINOv2; not timm's)
/// sum           the sum over the patches (not timm's)
/// map           attention pooling by a learned query, AttentionPoolLatent
/// ```
enum class Pool { none, token, avg, max, avgmax, sum, map, token_avg };
Pool pool_named(std::string_view name);  ///< throws Error, listing the names, for others
std::string_view name_of(Pool pool);

/// Pools the tokens of x [B, N, D] from `prefix` on to `[B, D]`, by any kind but `map`. Three kinds differ: none
/// returns x itself; token takes the first token; token_avg gives [B, 2 D].
Tensor pool_tokens(const Tensor& x, Pool pool, std::int64_t prefix);

/// The sizes and parts of an AttentionPoolLatent.
struct AttentionPoolConfig {
  std::int64_t dim = 0;
  std::int64_t num_heads = 8;
  double mlp_ratio = 4;
  bool qkv_bias = true;
  NormConfig norm = {};
  ops::Activation activation = ops::Activation::gelu;
};

/// Multi-head attention pooling (Set Transformer: Lee et al. 2019, as in big_vision and timm's AttentionPoolLatent): a
/// learned query attends to all tokens, and an Mlp with a residual follows. x [B, N, D] → [B, D]:
///
/// ```text
/// z = attention(query = latent, context = x),   y = z + mlp(norm(z)).
/// ```
///
/// A recorder gets the map [B, H, 1, N] as one of pooling. Parameters `latent` [1, 1, D], `q`, `kv`, `proj`, `norm`,
/// `mlp`.
struct AttentionPoolLatent {
  AttentionPoolLatent(const Scope& scope, const AttentionPoolConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  Tensor latent;
  CrossAttention attention;
  Norm norm;
  Mlp mlp;
};

}  // namespace vitrail::nn
