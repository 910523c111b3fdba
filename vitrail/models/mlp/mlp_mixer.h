/// \file
/// Models that mix tokens by linear layers: MLP-Mixer, ResMLP, gMLP and Glu-Mixer, timm's MlpMixer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

/// timm's arguments under timm's names.
struct MlpMixerConfig {
  enum class Block { mixer, res, spatial_gating };
  enum class Mlp { mlp, glu, gated };

  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Size2 img_size = {224, 224};
  std::int64_t in_chans = 3;
  nn::Size2 patch_size = {16, 16};
  std::int64_t num_blocks = 8;
  std::int64_t embed_dim = 512;
  /// Hidden widths divided by embed_dim: of the Mlps along tokens (which only MixerBlock has) and along channels.
  std::array<double, 2> mlp_ratio = {0.5, 4.0};
  Block block_layer = Block::mixer;
  double init_values = 1e-4;  ///< of ResBlock's scales: block_layer=(resblock,1e-04)
  Mlp mlp_layer = Mlp::mlp;
  nn::NormConfig norm_layer;
  ops::Activation act_layer = ops::Activation::gelu;
  double drop_rate = 0;       ///< before the head
  double proj_drop_rate = 0;  ///< of the Mlps' outputs and hidden units
  double drop_path_rate = 0;  ///< of every block
  bool nlhb = false;          ///< the head's bias starts from -ln(num_classes)
  bool stem_norm = false;     ///< normalize the embedded patches
  bool pool = true;           ///< global_pool 'avg'; false: '', the head is applied to every token
};

/// The configuration of a block.
struct MixerBlockConfig {
  std::int64_t dim = 0;
  std::int64_t tokens = 0;
  std::int64_t tokens_hidden = 0;
  nn::NormConfig norm;
  bool glu = false;  ///< gated linear units instead of Mlps
  nn::MlpConfig channels;
  float init_values = 0;
  float drop_path = 0;
};

// All blocks map x [B, N, D] to [B, N, D].

/// The block of MLP-Mixer (Tolstikhin et al. 2021, eq. 1), timm's MixerBlock; ᵀ transposes tokens and features:
///
/// ```text
/// x = x + drop_path(mlp_tokens(norm1(x)ᵀ)ᵀ)
/// x = x + drop_path(mlp_channels(norm2(x)))
/// ```
struct MixerBlock {
  MixerBlock(const nn::Scope& scope, const MixerBlockConfig& config);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  nn::Norm norm1;
  nn::FeedForward mlp_tokens;
  nn::Norm norm2;
  nn::FeedForward mlp_channels;
  nn::DropPath drop_path;
  std::int64_t dim;
};

/// The block of ResMLP (Touvron et al. 2021, eq. 2 and 3), timm's ResBlock, with scales `ls1` and `ls2` [D]; ᵀ
/// transposes tokens and features:
///
/// ```text
/// x = x + drop_path(ls1 ⊙ linear_tokens(norm1(x)ᵀ)ᵀ)
/// x = x + drop_path(ls2 ⊙ mlp_channels(norm2(x)))
/// ```
struct ResBlock {
  ResBlock(const nn::Scope& scope, const MixerBlockConfig& config);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  nn::Norm norm1;
  nn::Linear linear_tokens;
  nn::Norm norm2;
  nn::FeedForward mlp_channels;
  Tensor ls1;
  Tensor ls2;
  nn::DropPath drop_path;
  std::int64_t dim;
};

/// The spatial gating unit of gMLP (Liu et al. 2021, eq. 2 and 4): u ⊙ proj(norm(v)ᵀ)ᵀ with [u, v] = x, where x is
/// [B, N, 2 E] and the result [B, N, E]. One half of the features is gated by the other half at all places.
struct SpatialGatingUnit {
  SpatialGatingUnit(const nn::Scope& scope, std::int64_t dim, std::int64_t tokens);
  Tensor operator()(const Tensor& x) const;

  nn::LayerNorm norm;
  nn::Linear proj;
};

/// timm's GatedMlp: fc2(gate(act(fc1(x)))).
struct GatedMlp {
  GatedMlp(const nn::Scope& scope, const nn::MlpConfig& config, std::int64_t tokens);
  Tensor operator()(const Tensor& x, nn::Pass& pass, const Tensor& residual) const;

  ops::Activation activation;
  nn::Linear fc1;
  nn::Dropout drop1;
  SpatialGatingUnit gate;
  nn::Linear fc2;
  nn::Dropout drop2;
};

/// The block of gMLP (Liu et al. 2021, eq. 1), timm's SpatialGatingBlock: x = x + drop_path(mlp_channels(norm(x))).
struct SpatialGatingBlock {
  SpatialGatingBlock(const nn::Scope& scope, const MixerBlockConfig& config);
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  nn::Norm norm;
  GatedMlp mlp_channels;
  nn::DropPath drop_path;
};

/// timm's MlpMixer maps x [B, C, H, W] to logits by
///
/// ```text
/// x = stem(x)                                  [B, N, D], a token for each patch
/// x = block(x), num_blocks times
/// logits = head(mean over tokens(norm(x)))     [B, num_classes]
/// ```
///
/// Because of its layers along tokens, the model takes only images of img_size.
class MlpMixer {
 public:
  /// Throws Error if the arguments contradict each other.
  MlpMixer(const nn::Scope& scope, const MlpMixerConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, N, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.embed_dim; }
  std::int64_t depth() const { return config_.num_blocks; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return false; }
  bool has_attention() const { return false; }
  const MlpMixerConfig& config() const { return config_; }

 private:
  using AnyBlock = std::variant<MixerBlock, ResBlock, SpatialGatingBlock>;

  MixerBlockConfig block_config() const;
  std::int64_t tokens() const;

  nn::Scope scope_;
  MlpMixerConfig config_;
  std::optional<nn::PatchEmbed> stem_;
  std::optional<nn::Norm> stem_norm_;
  std::vector<AnyBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
