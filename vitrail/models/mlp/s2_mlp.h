/// \file
/// S²-MLP (Yu et al. 2021, arXiv 2106.07477), in which patches exchange information only by shifts of channels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

/// The paper's sizes under timm's names: embed_dim is the paper's c, depth its N and mlp_ratio its r.
struct S2MlpConfig {
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Size2 img_size = {224, 224};  ///< the size that the model is intended for; it takes others too
  std::int64_t in_chans = 3;
  nn::Size2 patch_size = {16, 16};
  std::int64_t embed_dim = 384;
  std::int64_t depth = 36;
  double mlp_ratio = 4;
  /// Whether the norms are at the beginning of the branches of a block, as in the successor S²-MLPv2 and in other
  /// implementations, instead of at their end.
  bool pre_norm = false;
  double drop_rate = 0;       ///< before the head
  double proj_drop_rate = 0;  ///< of the hidden units and outputs of a block's layers
  double drop_path_rate = 0;  ///< of the last block; it grows linearly from 0 at the first
};

/// The spatial shift of x `[B, h, w, c]` (eq. 5 to 8). Each place takes the first quarter of the channels from its left
/// neighbour, the second from the right one, the third from the one above and the fourth from the one below; where
/// there is no such neighbour, at the border, it keeps its own.
Tensor spatial_shift(const Tensor& x);

/// The block of S²-MLP maps x [B, h, w, c] to [B, h, w, c]:
///
/// ```text
/// x = x + drop_path(norm1(fc2(spatial_shift(gelu(fc1(x))))))
/// x = x + drop_path(norm2(mlp(x)))
/// ```
struct SpatialShiftBlock {
  SpatialShiftBlock(const nn::Scope& scope, const S2MlpConfig& config, std::int64_t index);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  bool pre_norm;
  nn::LayerNorm norm1;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm norm2;
  nn::Mlp mlp;
  nn::Dropout drop;
  nn::DropPath drop_path;
};

/// The model maps x [B, C, H, W] to logits by
///
/// ```text
/// e = norm(W₀ patch + b₀)                    (eq. 4)
/// x = block(x), depth times
/// logits = head(mean over the patches(x))    [B, num_classes]
/// ```
///
/// It takes images of any size that consist of whole patches.
class S2Mlp {
 public:
  /// Throws Error if the arguments contradict each other.
  S2Mlp(const nn::Scope& scope, const S2MlpConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, h, w, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.embed_dim; }
  std::int64_t depth() const { return config_.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return true; }
  bool has_attention() const { return false; }
  const S2MlpConfig& config() const { return config_; }

 private:
  nn::Scope scope_;
  S2MlpConfig config_;
  std::optional<nn::PatchEmbed> patch_embed_;
  std::optional<nn::LayerNorm> norm_;
  std::vector<SpatialShiftBlock> blocks_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
