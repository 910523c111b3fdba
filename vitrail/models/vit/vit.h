/// \file
/// Vision Transformers: timm's VisionTransformer, VisionTransformerDistilled, VisionTransformerRelPos, Eva and Beit as
/// one model.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/vit/hybrid.h"
#include "vitrail/nn/attention/parallel_block.h"
#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/positions/absolute_position.h"
#include "vitrail/nn/positions/alibi.h"
#include "vitrail/nn/positions/rotary.h"

namespace vitrail::models {

/// timm's arguments under timm's names. Where an argument is an enum here, vit_config.cpp says how timm spells its
/// values.
struct VitConfig {
  /// Which of timm's classes determines the names of parameters, the initial values, the layers and the weight decay;
  /// `vit` includes the distilled class.
  enum class Kind { vit, relpos, eva, beit };
  using Positions = nn::AbsoluteKind;
  /// How positions are resized for another grid; tables of relative positions as nn::resample_bias_table() by timm, and
  /// as nn::interpolate_bias_table() by transformers.
  using PositionResize = nn::PositionResize;
  enum class WeightInit { timm, jax, jax_nlhb, moco, reset, mae };

  Kind kind = Kind::vit;
  nn::Size2 img_size = {224, 224};
  nn::Size2 patch_size = {16, 16};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::token;
  std::int64_t embed_dim = 768;
  std::int64_t depth = 12;
  std::int64_t num_heads = 12;
  double mlp_ratio = 4;
  std::int64_t mlp_hidden = 0;  ///< hidden units of the Mlp; 0: embed_dim · mlp_ratio
  bool qkv_fused = true;        ///< one projection for q, k and v
  bool qkv_bias = true;
  bool k_bias = true;                        ///< false: the keys have no bias (BEiT)
  bool qk_norm = false;                      ///< normalize the queries and keys of each head
  bool scale_attn_norm = false;              ///< normalize the concatenated heads
  bool scale_mlp_norm = false;               ///< normalize the hidden units of the Mlp
  bool proj_bias = true;                     ///< of attention's output projection and the Mlp's two layers
  std::optional<float> init_values;          ///< initial LayerScale (post_norm: initial weights of the norms)
  bool class_token = true;                   ///< `cls_token`
  Positions pos_embed = Positions::learned;  ///< `pos_embed`: what is added to the tokens
  double gsd = 1;                            ///< ground sample distance of the positions (nn::AbsoluteConfig)
  double fourier_sigma = 1;                  ///< frequency scale of Fourier features (nn::AbsoluteConfig)
  PositionResize pos_embed_resize = PositionResize::timm;
  bool no_embed_class = false;           ///< only the patches have positions
  std::int64_t reg_tokens = 0;           ///< number of register tokens, behind the class token (Darcet et al. 2024)
  bool pre_norm = false;                 ///< a norm before the blocks, and no bias in the patch embedding (CLIP)
  bool final_norm = true;                ///< a norm after the blocks
  std::optional<bool> fc_norm;           ///< the final norm is behind the pooling; unset: if this pools patches
  bool both_norms = false;               ///< norms in front of and behind the pooling in any case (Eva)
  bool pool_include_prefix = false;      ///< the pooling includes the prefix tokens
  std::int64_t attn_pool_num_heads = 0;  ///< of attention pooling; 0: num_heads
  double attn_pool_mlp_ratio = 0;        ///< 0: mlp_ratio
  bool dynamic_img_size = false;         ///< take images of any size; each forward resizes the positions
  bool dynamic_img_crop = false;         ///< leave out what is left of an image beyond the last whole patch
  bool dynamic_img_pad = false;          ///< pad to whole patches at the right and the bottom
  double drop_rate = 0;                  ///< before the head
  double pos_drop_rate = 0;              ///< after the positions
  double proj_drop_rate = 0;             ///< of the blocks' outputs and hidden units
  double attn_drop_rate = 0;             ///< of the attention probabilities
  double drop_path_rate = 0;             ///< of the last block; it grows linearly from 0 at the first
  WeightInit weight_init = WeightInit::timm;  ///< timm's weight_init, or the masked autoencoders'
  bool fix_init = false;                      ///< divide each block's output projections by √(2 (index + 1))
  double head_init_scale = 0;                 ///< factor of the head's initial weights; 0: none
  nn::NormConfig norm_layer;
  std::optional<nn::NormConfig> embed_norm_layer;  ///< a norm of the patches before their positions (AIMv2)
  ops::Activation act_layer = ops::Activation::gelu;
  nn::MlpKind mlp_layer = nn::MlpKind::mlp;
  nn::BlockKind block_kind = nn::BlockKind::sequential;  ///< timm's block_fn, with the next
  bool post_norm = false;                                ///< ResPostBlock (nn::NormPlace::res_post) instead of Block
  bool differential = false;  ///< timm's attn_layer: differential attention (nn::Differential)

  /// The convolutional network in front of the patches (hybrids), whose features are then cut into patches.
  std::optional<HybridConfig> backbone;

  bool distilled = false;  ///< `dist_token` and `head_dist` (DeiT: Touvron et al. 2021)

  std::optional<nn::RelPos::Kind> rel_pos_type;  ///< kind of relative positions; unset: none
  bool shared_rel_pos = false;                   ///< all blocks share them; false: each has its own
  bool both_rel_pos = false;                     ///< shared and own ones, added (BEiT)
  std::int64_t rel_pos_dim = 128;                ///< width of the network that computes them

  std::optional<nn::AlibiKind> alibi;  ///< kind of linear biases (ALiBi) in every block

  /// Rotary positions in every block; the model fills in what depends on its size.
  std::optional<nn::RotaryPositions::Config> rope;
};

/// What attention in one block gets from the positions of a model.
struct ScorePositions {
  Tensor bias;             ///< [1, H, N, N], added to the scores; undefined for none
  ops::Rotation rotation;  ///< rotates queries and keys
};

/// An Image is Worth 16x16 Words (Dosovitskiy et al. 2021). The model maps x [B, C, H, W] to logits by
///
/// ```text
/// x = norm_pre([tokens; patches] + positions)        [B, N, D]
/// x = block(x), depth times
/// logits = head(fc_norm(pool(norm(x))))              [B, num_classes]
/// ```
///
/// With two heads (distilled), the logits are the mean of those of the class token and those of the distillation token.
/// The recorder gets the features and the attention map of every block, the features of the stages of a hybrid's
/// backbone, and the map of attention pooling.
class VisionTransformer {
 public:
  /// Throws Error if the arguments contradict each other.
  VisionTransformer(const nn::Scope& scope, const VitConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, N, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const;
  std::vector<Tensor> forward_heads(const Tensor& x, nn::Pass& pass) const;

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const {
    return config_.global_pool == nn::Pool::token_avg ? 2 * config_.embed_dim : config_.embed_dim;
  }
  std::int64_t depth() const { return config_.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool no_weight_decay(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const;
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return config_.dynamic_img_size; }
  const VitConfig& config() const { return config_; }

  /// The following functions are the steps of forward_features(), for models that combine them in another way
  /// (MaskedAutoencoder).
  ///
  /// The patch embedding, which a hybrid with a ConvStem does not have.
  const nn::PatchEmbed& patch_embed() const { return *patch_embed_; }
  /// Puts the prefix tokens in front of the patches x [B, N, D], which have their positions already:
  /// [class token …; x], [B, P + N, D]. The prefix tokens get their part of `positions` (token_positions(); may be
  /// undefined).
  Tensor with_prefix(const Tensor& x, const Tensor& positions) const;
  /// Runs tokens [B, N, D] through all blocks, for images whose patches form `grid`.
  Tensor run_blocks(Tensor tokens, const nn::Size2& grid, nn::Pass& pass) const;
  /// Applies the final norm to tokens [..., D] if it is in front of the pooling.
  Tensor final_norm(const Tensor& tokens) const { return norm_ ? (*norm_)(tokens) : tokens; }
  /// The FLOPs of run_blocks() for one image with so many tokens.
  std::int64_t blocks_flops(std::int64_t tokens) const;
  std::int64_t final_norm_flops(std::int64_t tokens) const { return norm_ ? norm_->flops(tokens) : 0; }

  /// The position embeddings [1, P + rows · columns, D] of images with this grid of patches, where P is
  /// position_prefix(); undefined if there are none.
  Tensor token_positions(const nn::Size2& grid, nn::Pass& pass) const { return (*positions_)(grid, pass); }
  std::int64_t position_prefix() const;  ///< number of prefix tokens that have a position

  /// What attention in each block gets from the positions on this grid.
  std::vector<ScorePositions> score_positions(const nn::Size2& grid, nn::Pass& pass) const;

 private:
  std::optional<nn::Norm> norm_if(bool wanted, const nn::Scope& scope) const;
  nn::AttentionPoolConfig attn_pool_config() const;
  nn::AbsoluteConfig positions_config() const;
  nn::RelPos::Config rel_pos_config() const;
  nn::RotaryPositions::Config rope_config() const;
  nn::Size2 feature_size(const nn::Size2& image) const;  ///< of the map that is cut into patches
  nn::Size2 grid(std::int64_t height, std::int64_t width) const;
  std::int64_t prefix() const;  ///< number of tokens in front of the patches
  nn::BlockConfig block_config(std::int64_t index) const;
  nn::AttentionConfig attention_config(std::int64_t index) const;
  Tensor patches(const Tensor& x, nn::Pass& pass) const;
  Tensor embed(const Tensor& x, nn::Pass& pass) const;
  /// The part of ScorePositions that all blocks share: one entry, or, with learned rotations, one for each block.
  std::vector<ScorePositions> shared_score_positions(const nn::Size2& grid, nn::Pass& pass) const;
  Tensor encode(const Tensor& x, nn::Pass& pass) const;
  Tensor read_token(const Tensor& x, std::int64_t index) const;
  Tensor fc_norm(const Tensor& x) const;
  Tensor pooled(const Tensor& x, nn::Pass& pass) const;
  Tensor classify(const Tensor& x, const std::optional<nn::Linear>& head, nn::Pass& pass, bool pre_logits) const;

  nn::Scope scope_;
  VitConfig config_;
  Tensor cls_token_;  ///< [1, 1, D]
  Tensor reg_token_;  ///< [1, R, D]
  std::optional<nn::AbsolutePositions> positions_;
  Tensor dist_token_;  ///< [1, 1, D]
  std::optional<HybridBackbone> backbone_;
  std::optional<nn::PatchEmbed> patch_embed_;  ///< unset behind a ConvStem
  std::optional<nn::Norm> patch_norm_;
  std::optional<nn::Norm> norm_pre_;
  std::optional<nn::RelPos> shared_rel_pos_;
  std::optional<nn::RotaryPositions> rope_;
  std::vector<nn::TowerBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::AttentionPoolLatent> attn_pool_;
  std::optional<nn::Norm> fc_norm_;
  std::optional<nn::Linear> head_;
  std::optional<nn::Linear> head_dist_;
};

}  // namespace vitrail::models
