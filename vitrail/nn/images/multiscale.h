/// \file
/// Blocks of multiscale vision transformers (MViT), for images and videos.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/nn/drop.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/decomposed_rel_pos.h"
#include "vitrail/nn/positions/token_grid.h"

namespace vitrail::nn {

/// The names of a block's parameters, where the references differ. The defaults are timm's.
struct MultiscaleNames {
  std::string proj = "attn.proj";
  std::array<std::string, 3> pools = {"attn.pool_q", "attn.pool_k", "attn.pool_v"};
  std::array<std::string, 3> norms = {"attn.norm_q", "attn.norm_k", "attn.norm_v"};
  std::string fc1 = "mlp.fc1";
  std::string fc2 = "mlp.fc2";
  std::string shortcut_attn = "shortcut_proj_attn";  ///< the linear map on the shortcut around attention
  std::string shortcut_mlp = "shortcut_proj_mlp";    ///< the linear map on the shortcut around the Mlp
};

/// How tokens are pooled: by a depthwise convolution, or by the largest or the mean of each window.
enum class TokenPool { conv, max, avg };

struct MultiscaleBlockConfig {
  MultiscaleNames names = {};
  std::int64_t dim = 0;
  std::int64_t dim_out = 0;
  std::int64_t num_heads = 1;
  std::int64_t mlp_hidden = 0;
  bool qkv_bias = true;
  bool expand_attn = true;  ///< the width grows in attention instead of in the Mlp
  TokenPool mode = TokenPool::conv;
  bool video = false;  ///< the weights of the convolutions have a dimension of frames
  Size3 kernel_q = {1, 1, 1};
  Size3 kernel_kv = {1, 1, 1};
  Size3 stride_q = {1, 1, 1};
  Size3 stride_kv = {1, 1, 1};
  std::int64_t prefix = 0;       ///< number of class tokens: 0 or 1
  bool residual_pooling = true;  ///< the pooled queries are added to attention's output
  bool residual_prefix = true;   ///< the class token's query too
  Size3 rel_pos_lengths = {};    ///< of the tables of relative positions; all 0: none
  Init rel_pos_init = Init::zeros();
  NormConfig norm = {};
  float proj_drop = 0;  ///< dropout of attention's output and of both maps of the Mlp
  float drop_path = 0;
};

/// Tokens [B, P + N, C], and the grid on which the N patches behind the prefix lie.
struct GridTokens {
  Tensor x;
  Size3 grid = {1, 1, 1};
};

/// Pooling attention (MViT: Fan et al. 2021, eq. 1; MViTv2: Li et al. 2022, eq. 2 to 5), x [B, P + N, dim] →
/// [B, P + N', width]. For each head,
///
/// ```text
/// Q = norm(pool(x W_q)), K = norm(pool(x W_k)), V = norm(pool(x W_v))
/// Z = softmax(Q Kᵀ / √d + b) V + Q,   y = proj(Z)
/// ```
///
/// with MViTv2's relative positions b and residual Q. Pooling is a depthwise convolution whose weights all heads share,
/// or takes the largest or the mean of each window. Where kernel and stride are 1, there is neither pooling nor a norm.
/// The class token is not pooled.
struct PoolingAttention {
  PoolingAttention(const Scope& scope, const MultiscaleBlockConfig& config);
  /// `residual` [B, P + N', width], which is added to the output, may be undefined. A recorder is told that the map
  /// lies `at` some place, or else on the grids of queries and keys.
  GridTokens operator()(const GridTokens& tokens, Pass& pass, const Tensor& residual = {},
                        std::shared_ptr<const TokenGrid> at = {}) const;
  Size3 query_grid(const Size3& grid) const;
  Size3 key_grid(const Size3& grid) const;
  std::int64_t flops(const Size3& grid) const;

  MultiscaleBlockConfig config;
  std::string name;    ///< its path, under which a recorder gets the map
  std::int64_t width;  ///< of all heads together
  Linear qkv;
  std::array<Tensor, 3> pools;  ///< undefined where nothing is pooled, or not by convolution
  std::array<std::optional<Norm>, 3> norms;
  std::optional<DecomposedRelPos> rel_pos;
  Linear proj;
};

/// A block of a multiscale vision transformer (timm's MultiScaleBlock, torchvision's MultiscaleBlock):
///
/// ```text
/// x = pool(shortcut(x)) + drop_path(attn(norm1(x)))
/// x = shortcut(x) + drop_path(mlp(norm2(x)))
/// ```
///
/// Where the width changes, the shortcut is a linear map of the normalized tokens; where the grid changes, it takes the
/// largest of the tokens in windows of stride + 1.
struct MultiscaleBlock {
  MultiscaleBlock(const Scope& scope, const MultiscaleBlockConfig& config);
  GridTokens operator()(const GridTokens& tokens, Pass& pass) const;
  Size3 output_grid(const Size3& grid) const { return attn.query_grid(grid); }
  std::int64_t flops(const Size3& grid) const;  ///< fvcore's count for one sample

  MultiscaleBlockConfig config;
  Norm norm1;
  PoolingAttention attn;
  std::optional<Linear> shortcut_attn;
  Norm norm2;
  Linear fc1;
  Linear fc2;
  std::optional<Linear> shortcut_mlp;
  Dropout proj_drop;
  DropPath drop_path;
};

/// Divides and rounds down, as torch's int(size // stride). By this grid the references size their tables of positions.
Size3 divided(const Size3& grid, const Size3& stride);
/// The lengths of the position tables for attention on `grid`: those of rows and columns by its longer side, and, for
/// videos, that of frames (otherwise 0).
Size3 rel_pos_lengths(const Size3& grid, const Size3& stride_q, const Size3& stride_kv, bool video);

}  // namespace vitrail::nn
