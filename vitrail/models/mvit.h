// Multiscale Vision Transformers for pictures: timm's MultiScaleVit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/conv.h"
#include "vitrail/nn/multiscale.h"
#include "vitrail/nn/pool.h"

namespace vitrail::models {

// timm's arguments under timm's names, those of MultiScaleVitCfg and of the constructor.
struct MvitConfig {
  nn::Size2 img_size = {224, 224};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;      // 0: no head, the pooled features come out
  std::optional<nn::Pool> global_pool;  // avg, token or none; unset: token where there is a class token, else avg
  std::vector<std::int64_t> depths = {2, 3, 16, 3};
  std::vector<std::int64_t> embed_dim = {96, 192, 384,
                                         768};         // of each stage; one number is doubled from stage to stage
  std::vector<std::int64_t> num_heads = {1, 2, 4, 8};  // likewise
  double mlp_ratio = 4;
  bool expand_attn = true;  // the width grows in the first block's attention, not in the last block's Mlp
  bool qkv_bias = true;
  bool use_cls_token = false;
  bool use_abs_pos = false;
  bool residual_pooling = true;
  nn::TokenPool mode = nn::TokenPool::conv;
  nn::Size2 kernel_qkv = {3, 3};
  std::vector<nn::Size2> stride_q = {{1, 1}, {2, 2}, {2, 2}, {2, 2}};   // of each stage's first block
  std::vector<nn::Size2> stride_kv = {{4, 4}, {2, 2}, {1, 1}, {1, 1}};  // of each stage's blocks
  nn::Size2 patch_kernel = {7, 7};
  nn::Size2 patch_stride = {4, 4};
  nn::Size2 patch_padding = {3, 3};
  bool rel_pos = true;   // `rel_pos_type` "spatial"
  nn::NormConfig norm;   // `norm_layer` and `norm_eps`
  double drop_rate = 0;  // before the head
  double drop_path_rate = 0;
};

// MViTv2: Improved Multiscale Vision Transformers (Li et al. 2022). Stages of blocks with pooling attention, each on a
// coarser grid with more channels: x [B, C, H, W] → logits [B, num_classes].
class MultiscaleVit : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit MultiscaleVit(const MvitConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return config_.embed_dim.back(); }
  std::int64_t depth() const override { return static_cast<std::int64_t>(config_.depths.size()); }  // stages
  // Of the patches that the first stage takes.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override;
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return !config_.rel_pos && !config_.use_abs_pos; }
  const MvitConfig& config() const { return config_; }

 private:
  std::int64_t prefix() const { return config_.use_cls_token ? 1 : 0; }
  nn::Size3 grid(std::int64_t height, std::int64_t width) const;
  nn::GridTokens embed(const Tensor& x, nn::Pass& pass) const;

  MvitConfig config_;
  std::optional<nn::Conv2d> patch_embed_;
  Tensor cls_token_;  // [1, 1, D]
  Tensor pos_embed_;  // [1, P + rows · columns, D]
  std::vector<std::vector<nn::MultiscaleBlock>> stages_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
