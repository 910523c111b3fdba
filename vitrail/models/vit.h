// Vision Transformers: timm's VisionTransformer, VisionTransformerDistilled, VisionTransformerRelPos, Eva and Beit as
// one model.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/models/resnetv2.h"
#include "vitrail/nn/absolute_position.h"
#include "vitrail/nn/alibi.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/pool.h"
#include "vitrail/nn/rotary.h"

namespace vitrail::models {

// timm's arguments under timm's names. Where one is an enum here, vit_config.cpp says how timm spells its values.
struct VitConfig {
  // Which of timm's classes it is for the names of parameters, starting values, layers and weight decay; `vit` is the
  // distilled one too.
  enum class Kind { vit, relpos, eva, beit };
  using Positions = nn::AbsoluteKind;
  enum class Start { timm, jax, jax_nlhb, moco, reset };

  Kind kind = Kind::vit;
  nn::Size2 img_size = {224, 224};
  nn::Size2 patch_size = {16, 16};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  // 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::token;
  std::int64_t embed_dim = 768;
  std::int64_t depth = 12;
  std::int64_t num_heads = 12;
  double mlp_ratio = 4;
  std::int64_t mlp_hidden = 0;  // instead of embed_dim · mlp_ratio if positive
  bool qkv_fused = true;        // q, k and v from one product
  bool qkv_bias = true;
  bool k_bias = true;                        // without: keys have none (BEiT)
  bool qk_norm = false;                      // norm each head's queries and keys
  bool scale_attn_norm = false;              // norm the joined heads
  bool scale_mlp_norm = false;               // norm the hidden units
  bool proj_bias = true;                     // of attention's output and the Mlp's two maps
  std::optional<float> init_values;          // LayerScale (post-norm: the norms' first weights)
  bool class_token = true;                   // `cls_token`
  Positions pos_embed = Positions::learned;  // `pos_embed`: what is added to the tokens
  double gsd = 1;                            // of positions on the ground (nn::AbsoluteConfig)
  double fourier_sigma = 1;                  // of Fourier features
  bool no_embed_class = false;               // positions for the patches alone
  std::int64_t reg_tokens = 0;               // `reg_token`, after the class token (Darcet et al. 2024)
  bool pre_norm = false;                     // norm before the blocks, and no bias in the patch embedding (CLIP)
  bool final_norm = true;                    // norm after the blocks
  std::optional<bool> fc_norm;               // put the final norm behind the pooling; unset: where it is a mean …
  bool both_norms = false;                   // of these two, whatever the three above say (Eva)
  bool pool_include_prefix = false;          // pool over the prefix tokens too
  std::int64_t attn_pool_num_heads = 0;      // of attention pooling; 0: num_heads
  double attn_pool_mlp_ratio = 0;            // 0: mlp_ratio
  bool dynamic_img_size = false;             // take any size; positions are resized in each forward
  bool dynamic_img_pad = false;              // fill up to whole patches at the right and the bottom
  double drop_rate = 0;                      // before the head
  double pos_drop_rate = 0;                  // after the positions
  double proj_drop_rate = 0;                 // in the blocks' outputs and hidden units
  double attn_drop_rate = 0;                 // of attention's probabilities
  double drop_path_rate = 0;                 // of the last block; it grows linearly from 0 at the first
  Start weight_init = Start::timm;           // timm's weight_init
  bool fix_init = false;                     // divide each block's output maps by √(2 (index + 1))
  double head_init_scale = 0;                // multiplies the head's first weights if positive
  nn::NormConfig norm_layer;
  ops::Activation act_layer = ops::Activation::gelu;
  nn::MlpKind mlp_layer = nn::MlpKind::mlp;
  bool post_norm = false;  // timm's block_fn: ResPostBlock instead of Block

  // The convolutional network in front of the patches (hybrids), whose pixels are cut into patches then; without any
  // layers its stem alone.
  std::optional<ResNetV2Config> backbone;

  bool distilled = false;  // `dist_token` and `head_dist` (DeiT: Touvron et al. 2021)

  std::optional<nn::RelPos::Kind> rel_pos_type;  // relative positions in every block, or
  bool shared_rel_pos = false;                   // the same ones for all, or
  bool both_rel_pos = false;                     // both, added (BEiT)
  std::int64_t rel_pos_dim = 128;                // width of their network

  std::optional<nn::AlibiKind> alibi;  // linear biases in every block

  // Rotary positions in every block; what depends on the model's size is filled in by the model.
  std::optional<nn::RotaryPositions::Config> rope;
};

// What a model's positions say to attention in one block.
struct ScorePositions {
  Tensor bias;             // [1, H, N, N], added to the scores; undefined for none
  ops::Rotation rotation;  // turns queries and keys
};

// An Image is Worth 16x16 Words (Dosovitskiy et al. 2021). x [B, C, H, W] →
//
//   x = norm_pre([tokens; patches] + positions)        [B, N, D]
//   x = block(x), depth times
//   logits = head(fc_norm(pool(norm(x))))              [B, num_classes]
//
// With two heads (distilled) the logits are the mean of the class token's and the distillation token's. The recorder
// gets the features and the attention map of every block, those of a hybrid's stages in front, and the map of attention
// pooling.
class VisionTransformer : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit VisionTransformer(const VitConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;
  std::vector<Tensor> forward_heads(const Tensor& x, nn::Pass& pass) const override;
  // The tokens after the last block and the final norm: [B, N, D] in the pass's dtype.
  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override {
    return config_.global_pool == nn::Pool::token_avg ? 2 * config_.embed_dim : config_.embed_dim;
  }
  std::int64_t depth() const override { return config_.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override;
  bool is_classifier(const std::string& parameter) const override;
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return config_.dynamic_img_size; }
  const VitConfig& config() const { return config_; }

  // What is added to the tokens of pictures with this grid of patches, [1, P + rows · columns, D], P of them in front
  // (position_prefix()); undefined for nothing.
  Tensor token_positions(const nn::Size2& grid, nn::Pass& pass) const { return (*positions_)(grid, pass); }
  std::int64_t position_prefix() const;  // how many of the tokens in front have a position
  // What attention in each block is told about positions on this grid.
  std::vector<ScorePositions> score_positions(const nn::Size2& grid, nn::Pass& pass) const;

 private:
  using AnyBlock = std::variant<nn::Block, nn::ResPostBlock>;

  std::optional<nn::Norm> norm_if(bool wanted, const nn::Scope& scope) const;
  nn::AttentionPoolConfig attn_pool_config() const;
  nn::AbsoluteConfig positions_config() const;
  nn::RelPos::Config rel_pos_config() const;
  nn::RotaryPositions::Config rope_config() const;
  nn::Size2 feature_size(const nn::Size2& picture) const;  // of what is cut into patches
  nn::Size2 grid(std::int64_t height, std::int64_t width) const;
  std::int64_t prefix() const;  // tokens in front of the patches
  nn::BlockConfig block_config(std::int64_t index) const;
  AnyBlock make_block(const nn::Scope& scope, std::int64_t index) const;
  Tensor patches(const Tensor& x, nn::Pass& pass) const;
  Tensor embed(const Tensor& x, nn::Pass& pass) const;
  // What all blocks share of ScorePositions, or, with learned rotations, have one each of.
  std::vector<ScorePositions> shared_score_positions(const nn::Size2& grid, nn::Pass& pass) const;
  Tensor run_block(std::size_t index, const Tensor& x, nn::Pass& pass, const ScorePositions& positions) const;
  Tensor encode(const Tensor& x, nn::Pass& pass) const;
  Tensor normed(const Tensor& tokens) const;
  Tensor read_token(const Tensor& x, std::int64_t index) const;
  Tensor pooled(const Tensor& x, nn::Pass& pass) const;
  Tensor classify(const Tensor& x, const std::optional<nn::Linear>& head, nn::Pass& pass) const;

  VitConfig config_;
  Tensor cls_token_;  // [1, 1, D]
  Tensor reg_token_;  // [1, R, D]
  std::optional<nn::AbsolutePositions> positions_;
  Tensor dist_token_;  // [1, 1, D]
  std::variant<std::monostate, ResNetV2Stem, ResNetV2Body> backbone_;
  std::optional<nn::PatchEmbed> patch_embed_;
  std::optional<nn::Norm> norm_pre_;
  std::optional<nn::RelPos> shared_rel_pos_;
  std::optional<nn::RotaryPositions> rope_;
  std::vector<AnyBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::AttentionPoolLatent> attn_pool_;
  std::optional<nn::Norm> fc_norm_;
  std::optional<nn::Linear> head_;
  std::optional<nn::Linear> head_dist_;
};

}  // namespace vitrail::models
