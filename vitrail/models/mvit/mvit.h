/// \file
/// Multiscale Vision Transformers for images: timm's MultiScaleVit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/images/multiscale.h"

namespace vitrail::models {

/// timm's arguments under timm's names: those of MultiScaleVitCfg and of the constructor.
struct MvitConfig {
  nn::Size2 img_size = {224, 224};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;      ///< 0: no head, the pooled features come out
  std::optional<nn::Pool> global_pool;  ///< avg, token or none; unset: token where there is a class token, else avg
  std::vector<std::int64_t> depths = {2, 3, 16, 3};
  std::vector<std::int64_t> embed_dim = {96, 192, 384, 768};  ///< by stage; one number doubles from stage to stage
  std::vector<std::int64_t> num_heads = {1, 2, 4, 8};         ///< of each stage, read in the same way as embed_dim
  double mlp_ratio = 4;
  /// A stage's first block widens the tokens in its attention; false: the last block of the stage before does in its
  /// Mlp.
  bool expand_attn = true;
  bool qkv_bias = true;
  bool use_cls_token = false;
  bool use_abs_pos = false;
  bool residual_pooling = true;
  nn::TokenPool mode = nn::TokenPool::conv;
  nn::Size2 kernel_qkv = {3, 3};
  std::vector<nn::Size2> stride_q = {{1, 1}, {2, 2}, {2, 2}, {2, 2}};   ///< of the first block of each stage
  std::vector<nn::Size2> stride_kv = {{4, 4}, {2, 2}, {1, 1}, {1, 1}};  ///< of all blocks of each stage
  nn::Size2 patch_kernel = {7, 7};
  nn::Size2 patch_stride = {4, 4};
  nn::Size2 patch_padding = {3, 3};
  bool rel_pos = true;   ///< `rel_pos_type` "spatial"
  nn::NormConfig norm;   ///< `norm_layer` and `norm_eps`
  double drop_rate = 0;  ///< before the head
  double drop_path_rate = 0;
};

/// MViTv2: Improved Multiscale Vision Transformers (Li et al. 2022). The model has stages of blocks with pooling
/// attention, each on a coarser grid with more channels, and maps x [B, C, H, W] to logits [B, num_classes].
class MultiscaleVit {
 public:
  /// Throws Error if the arguments contradict each other.
  MultiscaleVit(const nn::Scope& scope, const MvitConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, P + N, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const;

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.embed_dim.back(); }
  std::int64_t depth() const { return static_cast<std::int64_t>(config_.depths.size()); }  ///< number of stages

  /// The layout of the patches that the first stage takes.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool no_weight_decay(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return !config_.rel_pos && !config_.use_abs_pos; }
  const MvitConfig& config() const { return config_; }

 private:
  std::int64_t prefix() const { return config_.use_cls_token ? 1 : 0; }
  nn::Size3 grid(std::int64_t height, std::int64_t width) const;
  nn::GridTokens embed(const Tensor& x, nn::Pass& pass) const;
  Tensor encode(const Tensor& x, nn::Pass& pass) const;
  nn::Pool pool() const;
  Tensor classify(const Tensor& pooled, nn::Pass& pass, bool pre_logits) const;

  nn::Scope scope_;
  MvitConfig config_;
  std::optional<nn::Conv2d> patch_embed_;
  Tensor cls_token_;  ///< [1, 1, D]
  Tensor pos_embed_;  ///< [1, P + rows · columns, D]
  std::vector<std::vector<nn::MultiscaleBlock>> stages_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
