/// \file
/// CycleMLP (Chen et al. 2022): a pyramid of fully connected layers along channels that read each channel at an offset
/// of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

/// Arguments under the names of the authors' code (github.com/ShoufaChen/CycleMLP).
struct CycleMlpConfig {
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Size2 img_size = {224, 224};  ///< the size that the model is intended for; it takes others too
  std::int64_t in_chans = 3;
  std::vector<std::int64_t> layers = {2, 2, 4, 2};  ///< blocks of each stage
  std::vector<std::int64_t> embed_dims = {64, 128, 320, 512};
  std::vector<double> mlp_ratios = {4, 4, 4, 4};
  bool qkv_bias = false;      ///< a bias in the layer `mlp_c`
  double drop_path_rate = 0;  ///< of the last block; it grows linearly from 0 at the first
};

/// The cycle fully connected layer (eq. 3) maps x [B, H, W, C] to [B, H, W, out]:
///
/// ```text
/// y[b, i, j] = Σ_c W[:, c] x[b, i + δ_i(c), j + δ_j(c), c] + bias,
/// ```
///
/// The offset of channel c goes round a stick of three places: it is (c + 1) mod 3 - 1 along one dimension, which
/// `stick` chooses, and 0 along the other. Zeros are read outside the map. The parameters are `weight` [out, C, 1, 1]
/// and `bias` [out]; the buffer `offset` [1, 2 C, 1, 1] holds the constant offsets (rows, columns) of each channel.
struct CycleFc {
  enum class Stick { horizontal, vertical };  ///< offsets along a row (kernel_size (1, 3)) or along a column (3, 1)
  CycleFc(const nn::Scope& scope, std::int64_t in, std::int64_t out, Stick stick);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops(std::int64_t tokens) const { return tokens * weight.numel(); }

  Stick stick;
  Tensor weight;
  Tensor bias;
};

/// Mixes three layers with weights for each image and channel (`reweight`, a split attention):
///
/// ```text
/// h, w, c = sfc_h(x), sfc_w(x), mlp_c(x)
/// a = softmax over the three of reweight(mean over places(h + w + c))
/// y = proj(a₀ ⊙ h + a₁ ⊙ w + a₂ ⊙ c)
/// ```
struct CycleMixing {
  CycleMixing(const nn::Scope& scope, std::int64_t dim, bool qkv_bias);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& residual) const;
  std::int64_t flops(std::int64_t tokens) const;

  nn::Linear mlp_c;
  CycleFc sfc_h;
  CycleFc sfc_w;
  nn::Mlp reweight;
  nn::Linear proj;
};

/// The block of CycleMLP: x = x + drop_path(attn(norm1(x))); x = x + drop_path(mlp(norm2(x))).
struct CycleBlock {
  CycleBlock(const nn::Scope& scope, std::int64_t dim, double mlp_ratio, bool qkv_bias, float drop_path);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  nn::LayerNorm norm1;
  CycleMixing attn;
  nn::LayerNorm norm2;
  nn::Mlp mlp;
  nn::DropPath drop_path;
};

/// The authors' CycleNet. From x [B, C, H, W] it embeds patches of 7x7 pixels at every fourth pixel; then come four
/// stages of blocks with 3x3 convolutions of stride 2 between them, the final norm, the mean over the places, and the
/// head. It takes images of any size from 3x3 on.
class CycleMlp {
 public:
  /// Throws Error if the arguments contradict each other.
  CycleMlp(const nn::Scope& scope, const CycleMlpConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, h, w, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.embed_dims.back(); }
  std::int64_t depth() const;
  /// The layout of the places of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  /// The FLOPs, where a CycleFC layer counts as the 1x1 convolution that it is once its inputs are gathered. fvcore
  /// does not count torchvision's deformable convolution, by which the authors compute it.
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  /// The layer of a parameter. The authors' code defines no layers for layer-wise decay: here each block is a layer,
  /// and a convolution between two stages belongs to the layer of the block behind it.
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return true; }
  bool has_attention() const { return false; }
  const CycleMlpConfig& config() const { return config_; }

 private:
  struct Stage {
    std::optional<nn::Conv2d> downsample;  ///< before the blocks; the first stage has none
    std::vector<CycleBlock> blocks;
  };

  nn::Scope scope_;
  CycleMlpConfig config_;
  std::optional<nn::Conv2d> patch_embed_;
  std::vector<Stage> stages_;
  std::optional<nn::LayerNorm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
