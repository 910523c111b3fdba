// Multiscale Vision Transformers for videos: torchvision's MViT.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/multiscale.h"

namespace vitrail::models {

// A block of torchvision's block_setting (MSBlockConfig).
struct MvitVideoBlock {
  std::int64_t num_heads = 1;
  std::int64_t input_channels = 96;
  std::int64_t output_channels = 96;
  nn::Size3 kernel_q = {1, 1, 1};  // frames, rows, columns; torchvision's empty list is 1 x 1 x 1: no pooling
  nn::Size3 kernel_kv = {1, 1, 1};
  nn::Size3 stride_q = {1, 1, 1};
  nn::Size3 stride_kv = {1, 1, 1};
};

// torchvision's arguments; where timm has a name for one, under that.
struct MvitVideoConfig {
  nn::Size2 img_size = {224, 224};  // `spatial_size`
  std::int64_t temporal_size = 16;  // frames of a clip
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 400;      // 0: no head, the class token comes out
  std::vector<MvitVideoBlock> blocks;  // `block_setting`, given as a list for each of its fields
  bool residual_pool = false;          // MViTv2's pooling residual
  bool residual_with_cls_embed = true;
  bool rel_pos_embed = false;  // MViTv2's relative positions; else absolute ones of place and time
  bool proj_after_attn = false;
  nn::Size3 patch_embed_kernel = {3, 7, 7};
  nn::Size3 patch_embed_stride = {2, 4, 4};
  nn::Size3 patch_embed_padding = {1, 3, 3};
  double drop_rate = 0.5;     // `dropout`, before the head
  double proj_drop_rate = 0;  // `attention_dropout`: of attention's output and in the Mlp
  double drop_path_rate = 0;  // `stochastic_depth_prob` of the last block; it grows linearly from 0 at the first
};

// Multiscale Vision Transformers (Fan et al. 2021) and MViTv2 (Li et al. 2022) on clips: x [B, C, T, H, W] f32 → logits
// [B, num_classes]. Parameters have torchvision's names.
class VideoMultiscaleVit : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit VideoMultiscaleVit(const MvitVideoConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t frames() const override { return config_.temporal_size; }
  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return config_.blocks.back().output_channels; }
  std::int64_t depth() const override { return static_cast<std::int64_t>(blocks_.size()); }
  // Of the first block: the frames' rows below each other.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;  // of a clip
  // torchvision has no layers: the embedding, the blocks one by one, the final norm with the last, the head.
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override;  // tokens and positions
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return false; }
  const MvitVideoConfig& config() const { return config_; }

 private:
  nn::Size3 grid(std::int64_t height, std::int64_t width) const;
  nn::GridTokens embed(const Tensor& x, nn::Pass& pass) const;

  MvitVideoConfig config_;
  Tensor patch_weight_;  // [D, C, kT, kH, kW]
  Tensor patch_bias_;
  Tensor class_token_;   // [D]
  Tensor class_pos_;     // [D], undefined with relative positions, as the next two
  Tensor spatial_pos_;   // [rows · columns, D]
  Tensor temporal_pos_;  // [frames, D]
  std::vector<nn::MultiscaleBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
