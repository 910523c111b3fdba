// Transformer blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "vitrail/nn/attention.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/position.h"

namespace vitrail::nn {

// γ ⊙ x over the last dimension of x [..., D] (CaiT: Touvron et al. 2021). Parameter `gamma` [D], or called `name`, a
// constant at first.
struct LayerScale {
  LayerScale(const Scope& scope, std::int64_t dim, float init, std::string_view name = "gamma");
  Tensor operator()(const Tensor& x) const;

  Tensor gamma;
};

// Relative positions of either kind, for the scores of attention.
class RelPos {
 public:
  enum class Kind { bias, mlp, mlp_swin };
  struct Config {
    Kind kind = Kind::mlp;
    Size2 window = {};           // the grid of patches
    std::int64_t hidden = 128;   // of the network
    std::int64_t prefix = 0;     // tokens in front: class token, registers
    std::int64_t num_heads = 0;  // as many as the attention has
  };
  RelPos(const Scope& scope, const Config& config);
  Tensor operator()(Pass& pass) const;  // [1, H, N, N] f32
  std::int64_t flops() const;

 private:
  std::variant<RelPosBias, RelPosMlp> bias_;
};

// What a block's own parameters are called: LayerScale's `ls1.gamma` and `ls2.gamma`, and the relative positions'
// `attn.rel_pos.…`; or, in timm's Beit and Eva, `gamma_1`, `gamma_2` and `attn.…`.
enum class BlockNames { vit, beit };

struct BlockConfig {
  AttentionConfig attention = {};
  MlpKind mlp_kind = MlpKind::mlp;
  MlpConfig mlp = {};
  NormConfig norm = {};
  std::optional<float> init_values = std::nullopt;  // of LayerScale; in a post-norm block of the norms' weights
  float drop_path = 0;
  std::optional<RelPos::Config> rel_pos = std::nullopt;  // the block's own
  BlockNames names = BlockNames::vit;
};

// A pre-norm block (Dosovitskiy et al. 2021, eq. 2 and 3), timm's Block, x [B, N, D] → [B, N, D]:
//   x = x + drop_path(ls1(attn(norm1(x))))
//   x = x + drop_path(ls2(mlp(norm2(x))))
// `bias` [1, H, N, N] f32 is added to the scores (positions shared by all blocks); undefined for none. `rotation` turns
// queries and keys.
struct Block {
  Block(const Scope& scope, const BlockConfig& config);
  Tensor operator()(Tensor x, Pass& pass, const Tensor& bias = {}, const ops::Rotation& rotation = {}) const;
  // What attention adds to its scores: the block's own positions and those that it is given.
  Tensor score_bias(Pass& pass, const Tensor& shared = {}) const;
  std::int64_t flops(std::int64_t tokens) const;

  Norm norm1;
  Attention attn;
  std::optional<RelPos> rel_pos;
  std::optional<LayerScale> ls1;
  Norm norm2;
  FeedForward mlp;
  std::optional<LayerScale> ls2;
  DropPath drop_path;
};

// A post-norm block (Swin V2: Liu et al. 2022), timm's ResPostBlock:
//   x = x + drop_path(norm1(attn(x)))
//   x = x + drop_path(norm2(mlp(x)))
// The norms' weights start from init_values where they are given.
struct ResPostBlock {
  ResPostBlock(const Scope& scope, const BlockConfig& config);
  Tensor operator()(Tensor x, Pass& pass, const Tensor& bias = {}, const ops::Rotation& rotation = {}) const;
  // What attention adds to its scores: the block's own positions and those that it is given.
  Tensor score_bias(Pass& pass, const Tensor& shared = {}) const;
  std::int64_t flops(std::int64_t tokens) const;

  Attention attn;
  std::optional<RelPos> rel_pos;
  Norm norm1;
  FeedForward mlp;
  Norm norm2;
  DropPath drop_path;
};

}  // namespace vitrail::nn
