/// \file
/// Multiscale Vision Transformers for videos: torchvision's MViT.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/images/multiscale.h"

namespace vitrail::models {

/// The configuration of a block: an entry of torchvision's block_setting (MSBlockConfig).
struct MvitVideoBlock {
  std::int64_t num_heads = 1;
  std::int64_t input_channels = 96;
  std::int64_t output_channels = 96;
  nn::Size3 kernel_q = {1, 1, 1};  ///< frames, rows, columns; 1 x 1 x 1 (torchvision: an empty list) does not pool
  nn::Size3 kernel_kv = {1, 1, 1};
  nn::Size3 stride_q = {1, 1, 1};
  nn::Size3 stride_kv = {1, 1, 1};
};

/// torchvision's arguments, under timm's name if timm has one.
struct MvitVideoConfig {
  nn::Size2 img_size = {224, 224};  ///< `spatial_size`
  std::int64_t temporal_size = 16;  ///< number of frames of a clip
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 400;      ///< 0: no head, the class token comes out
  std::vector<MvitVideoBlock> blocks;  ///< `block_setting`, given as a list for each of its fields
  bool residual_pool = false;          ///< MViTv2's pooling residual
  bool residual_with_cls_embed = true;
  bool rel_pos_embed = false;  ///< MViTv2's relative positions; false: absolute ones of space and time
  bool proj_after_attn = false;
  nn::Size3 patch_embed_kernel = {3, 7, 7};
  nn::Size3 patch_embed_stride = {2, 4, 4};
  nn::Size3 patch_embed_padding = {1, 3, 3};
  double drop_rate = 0.5;     ///< `dropout`, before the head
  double proj_drop_rate = 0;  ///< `attention_dropout`: of attention's output and of the Mlp
  double drop_path_rate = 0;  ///< `stochastic_depth_prob` of the last block; it grows linearly from 0 at the first
};

/// Multiscale Vision Transformers (Fan et al. 2021) and MViTv2 (Li et al. 2022) for clips: x [B, C, T, H, W] f32 →
/// logits [B, num_classes]. The parameters have torchvision's names.
class VideoMultiscaleVit {
 public:
  /// Throws Error if the arguments contradict each other.
  VideoMultiscaleVit(const nn::Scope& scope, const MvitVideoConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, 1 + N, D]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const;

  std::int64_t frames() const { return config_.temporal_size; }
  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.blocks.back().output_channels; }
  std::int64_t depth() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// The layout of the tokens of the first block, with the grids of the frames stacked along the rows.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;  ///< of one clip

  /// The layer of a parameter. torchvision does not define layers: here they are the embedding, each of the blocks (the
  /// last one together with the final norm), and the head.
  std::int64_t layer_of(const std::string& parameter) const;
  bool no_weight_decay(const std::string& parameter) const;  ///< true for tokens and positions
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return false; }
  const MvitVideoConfig& config() const { return config_; }

 private:
  nn::Size3 grid(std::int64_t height, std::int64_t width) const;
  nn::GridTokens embed(const Tensor& x, nn::Pass& pass) const;
  Tensor encode(const Tensor& x, nn::Pass& pass) const;
  Tensor classify(const Tensor& token, nn::Pass& pass, bool pre_logits) const;

  nn::Scope scope_;
  MvitVideoConfig config_;
  Tensor patch_weight_;  ///< [D, C, kT, kH, kW]
  Tensor patch_bias_;
  Tensor class_token_;   ///< [D]
  Tensor class_pos_;     ///< [D]; this and the next two are undefined with relative positions
  Tensor spatial_pos_;   ///< [rows · columns, D]
  Tensor temporal_pos_;  ///< [frames, D]
  std::vector<nn::MultiscaleBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
