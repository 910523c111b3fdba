/// \file
/// Transformer blocks and their parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/positions/position.h"

namespace vitrail::nn {

/// Scales x `[..., D]` by channel (CaiT: Touvron et al. 2021): γ ⊙ x. The parameter `gamma` [D], or `name`, is
/// initialized with the constant `init`.
struct LayerScale {
  LayerScale(const Scope& scope, std::int64_t dim, float init, std::string_view name = "gamma");
  Tensor operator()(const Tensor& x) const;

  Tensor gamma;
};

/// x + drop_path(scale(f(x))), where branch(residual) computes f(x) + residual, see add_branch(). `scale` may be unset.
template <class Branch>
Tensor add_scaled_branch(const Tensor& x, const std::optional<LayerScale>& scale, const DropPath& drop_path, Pass& pass,
                         Branch&& branch) {
  return scale ? x + drop_path((*scale)(branch(Tensor())), pass) : add_branch(x, drop_path, pass, branch);
}

/// The relative positions of a block, of any kind, as a bias of attention's scores.
class RelPos {
 public:
  enum class Kind { bias, mlp, mlp_swin };
  struct Config {
    Kind kind = Kind::mlp;
    Size2 window = {};           ///< the grid of patches
    std::int64_t hidden = 128;   ///< hidden width of the network of mlp and mlp_swin
    std::int64_t prefix = 0;     ///< tokens before the patches: class token, registers
    std::int64_t num_heads = 0;  ///< the number of heads of the attention
  };
  RelPos(const Scope& scope, const Config& config);
  Tensor operator()(Pass& pass) const;  ///< [1, H, N, N] f32
  std::int64_t flops() const;

 private:
  std::variant<RelPosBias, RelPosMlp> bias_;
};

/// The names of the parts of a block. If a name is empty, the parameters of the part have the names that they would
/// have as the block's own. The defaults are timm's; nn/attention/block_names.h has those of other references. The
/// names inside attention and the feed-forward part are in AttentionConfig and MlpConfig.
struct BlockNames {
  std::string norm1 = "norm1";
  std::string attn = "attn";
  std::string rel_pos = "attn.rel_pos";
  std::string ls1 = "ls1.gamma";  ///< the parameter of LayerScale
  std::string norm2 = "norm2";
  std::string mlp = "mlp";
  std::string ls2 = "ls2.gamma";
};

/// The place of the norm of a branch f, which is attention or the feed-forward part.
enum class NormPlace {
  pre,      ///< x + f(norm(x)): Dosovitskiy et al. 2021, eq. 2 and 3; timm's Block
  post,     ///< norm(x + f(x)): Vaswani et al. 2017, section 3.1; BERT
  both,     ///< norm(x) + f(norm(x)): Bloom's apply_residual_connection_post_layernorm
  res_post  ///< x + norm(f(x)): Swin V2 (Liu et al. 2022, figure 1); timm's ResPostBlock
};

/// The parts of a Block.
struct BlockConfig {
  AttentionConfig attention = {};
  MlpKind mlp_kind = MlpKind::mlp;
  MlpConfig mlp = {};
  NormConfig norm = {};
  NormPlace norm_place = NormPlace::pre;
  /// The initial value of LayerScale; unset: no LayerScale. A block with res-post-norms never has one: the weights of
  /// its norms begin with init_values instead.
  std::optional<float> init_values = std::nullopt;
  float drop_path = 0;
  std::optional<RelPos::Config> rel_pos = std::nullopt;  ///< relative positions of this block
  BlockNames names = {};
};

/// The LayerScale of a branch of such a block, with its parameter `name`, if the block has one.
std::optional<LayerScale> scale_if(const Scope& scope, const BlockConfig& config, const std::string& name = "gamma");

/// A transformer block, x [B, N, D] → [B, N, D]. With the norms in front (NormPlace lists the other places):
///
/// ```text
/// x = x + drop_path(ls1(attn(norm1(x))))
/// x = x + drop_path(ls2(mlp(norm2(x))))
/// ```
///
/// `extras` are passed to attention. Throws Error if they have a residual, since the block adds its own.
struct Block {
  Block(const Scope& scope, const BlockConfig& config);
  Tensor operator()(Tensor x, Pass& pass, const AttentionExtras& extras = {}) const;
  /// The bias that attention adds to its scores: the sum of the block's own relative positions and `shared`; undefined
  /// if there is neither.
  Tensor score_bias(Pass& pass, const Tensor& shared = {}) const;
  std::int64_t flops(std::int64_t tokens) const;

  NormPlace norm_place;
  Norm norm1;
  Attention attn;
  std::optional<RelPos> rel_pos;
  std::optional<LayerScale> ls1;
  Norm norm2;
  FeedForward mlp;
  std::optional<LayerScale> ls2;
  DropPath drop_path;
};

}  // namespace vitrail::nn
