/// \file
/// Transformer blocks whose branches stand side by side, and the block that a plain tower asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "vitrail/nn/attention/block.h"

namespace vitrail::nn {

/// timm's ParallelThingsBlock (Touvron et al. 2022, "Three things everyone should know about Vision Transformers",
/// section 3), x [B, N, D] → [B, N, D]: two attentions that see the same tokens, then two feed-forward networks,
///
/// ```text
/// x = x + Σ_i drop_path(ls_i(attn_i(norm_i(x))))
/// x = x + Σ_i drop_path(ls'_i(mlp_i(norm'_i(x))))
/// ```
///
/// Parameters `attns.i` and `ffns.i`, below them `norm`, `attn` or `mlp`, and `ls.gamma`. A recorder gets a map of each
/// attention.
struct ParallelThingsBlock {
  ParallelThingsBlock(const Scope& scope, const BlockConfig& config);
  Tensor operator()(Tensor x, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t tokens) const;

  /// A layer with its norm in front and its scale behind.
  template <class Layer>
  struct Branch {
    Norm norm;
    Layer layer;
    std::optional<LayerScale> ls;
  };

  std::vector<Branch<Attention>> attns;
  std::vector<Branch<FeedForward>> ffns;
  DropPath drop_path;
};

/// timm's ParallelScalingBlock (Dehghani et al. 2023, "Scaling Vision Transformers to 22 Billion Parameters", section
/// 2), in which attention and Mlp see the same tokens and share their first product, x [B, N, D] → [B, N, D]:
///
/// ```text
/// [m, q, k, v] = in_proj(in_norm(x))
/// x = x + drop_path(ls(attn_out_proj(attention(q, k, v)) + mlp_out_proj(act(m + mlp_bias))))
/// ```
///
/// If attention is differential it is timm's DiffParallelScalingBlock, whose last product is one too, `out_proj` of
/// [attention; Mlp]. The queries' bias (qkv_bias) covers m as well, and takes the place of `mlp_bias`. Parameters as
/// named here, and `q_norm` and `k_norm`.
struct ParallelScalingBlock {
  ParallelScalingBlock(const Scope& scope, const BlockConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras = {}) const;
  std::int64_t flops(std::int64_t tokens) const;

  ops::Activation activation;
  std::int64_t hidden;  ///< width of m
  Norm in_norm;
  Linear in_proj;
  Tensor mlp_bias;  ///< [hidden]; undefined if in_proj has a bias
  AttentionHeads heads;
  Dropout mlp_drop;
  std::optional<Linear> out_proj;  ///< or the next two
  std::optional<Linear> attn_out_proj;
  std::optional<Linear> mlp_out_proj;
  std::optional<LayerScale> ls;
  DropPath drop_path;

 private:
  Tensor branches(const Tensor& x, Pass& pass, const AttentionExtras& extras, const Tensor& residual) const;
};

enum class BlockKind { sequential, parallel_things, parallel_scaling };

/// The block that a model's config asks for: one of the two above, or Block.
class TowerBlock {
 public:
  TowerBlock(const Scope& scope, BlockKind kind, const BlockConfig& config);
  Tensor operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras = {}) const {
    return std::visit([&](const auto& block) { return block(x, pass, extras); }, block_);
  }
  /// Block::score_bias(); blocks of other kinds have no relative positions of their own.
  Tensor score_bias(Pass& pass, const Tensor& shared = {}) const;
  std::int64_t flops(std::int64_t tokens) const {
    return std::visit([&](const auto& block) { return block.flops(tokens); }, block_);
  }

 private:
  std::variant<Block, ParallelThingsBlock, ParallelScalingBlock> block_;
};

}  // namespace vitrail::nn
