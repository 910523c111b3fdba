// CycleMLP (Chen et al. 2022): a pyramid of channel maps that read each channel from another place nearby.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

// Arguments under the names of the authors' code (github.com/ShoufaChen/CycleMLP).
struct CycleMlpConfig {
  std::int64_t num_classes = 1000;  // 0: no head, the pooled features come out
  nn::Size2 img_size = {224, 224};  // that the model is meant for; it takes others too
  std::int64_t in_chans = 3;
  std::vector<std::int64_t> layers = {2, 2, 4, 2};  // blocks of each stage
  std::vector<std::int64_t> embed_dims = {64, 128, 320, 512};
  std::vector<double> mlp_ratios = {4, 4, 4, 4};
  bool qkv_bias = false;      // of the map `mlp_c`
  double drop_path_rate = 0;  // of the last block; it grows linearly from 0 at the first
};

// The cycle fully connected layer (eq. 3): x [B, H, W, C] → [B, H, W, out],
//   y[b, i, j] = Σ_c W[:, c] x[b, i + δ_i(c), j + δ_j(c), c] + bias,
// with the offsets of a stick of three places over which the channels go round: (c + 1) mod 3 - 1 along the rows, or
// along the columns. Zeros stand beyond the picture. Parameters `weight` [out, C, 1, 1] and `bias` [out]; the buffer
// `offset` [1, 2 C, 1, 1] holds the offsets (rows, columns) of each channel, always the same ones.
struct CycleFc {
  enum class Stick { horizontal, vertical };  // kernel_size (1, 3) and (3, 1)
  CycleFc(const nn::Scope& scope, std::int64_t in, std::int64_t out, Stick stick);
  Tensor operator()(const Tensor& x) const;
  std::int64_t flops(std::int64_t tokens) const { return tokens * weight.numel(); }

  Stick stick;
  Tensor weight;
  Tensor bias;
};

// Three maps, weighed for each picture and channel (`reweight`, a split attention):
//   h, w, c = sfc_h(x), sfc_w(x), mlp_c(x)
//   a = softmax over the three of reweight(mean over places(h + w + c))
//   y = proj(a₀ ⊙ h + a₁ ⊙ w + a₂ ⊙ c)
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

// x = x + drop_path(attn(norm1(x)));  x = x + drop_path(mlp(norm2(x)))
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

// The authors' CycleNet. x [B, C, H, W] → patches of 7x7 pixels at every fourth pixel; four stages of blocks with
// convolutions of 3x3 and stride 2 between them; the mean over the places of the norm; the head. Takes pictures of any
// size from 3x3 on.
class CycleMlp : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit CycleMlp(const CycleMlpConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return config_.embed_dims.back(); }
  std::int64_t depth() const override;
  // Of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  // With the maps of CycleFC counted as the convolutions of 1x1 that they are after the gathering; fvcore knows nothing
  // of torchvision's deformable convolution, by which the authors compute them.
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  // The authors' code has no layers for layer-wise decay: here each block is one, a convolution between two stages goes
  // with the block behind it.
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return true; }
  const CycleMlpConfig& config() const { return config_; }

 private:
  struct Stage {
    std::optional<nn::Conv2d> downsample;  // before the blocks; the first stage has none
    std::vector<CycleBlock> blocks;
  };

  CycleMlpConfig config_;
  std::optional<nn::Conv2d> patch_embed_;
  std::vector<Stage> stages_;
  std::optional<nn::LayerNorm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
