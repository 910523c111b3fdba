/// \file
/// Bottleneck Transformers: the part of timm's ByobNet that botnet26t_256 needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// timm's arguments under timm's names; the blocks are fixed.
struct BotNetConfig {
  nn::Size2 img_size = {256, 256};  ///< a multiple of 32; the relative positions are for this size
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::avg;
  double width_factor = 1;  ///< factor of the channels 64 (stem), 256, 512, 1024 and 2048 (stages)
  ops::Activation act_layer = ops::Activation::relu;
  double drop_rate = 0;        ///< before the head
  double drop_path_rate = 0;   ///< of the last block; it grows linearly from 0
  bool zero_init_last = true;  ///< each block starts as its shortcut: the weights of its last norm are 0
};

/// Self-attention over the pixels of x [B, C, H, W] with relative positions (Srinivas et al. 2021), timm's
/// BottleneckAttn with 4 heads. The scores of a query at (y, x) and a key at (y', x') are
///
/// ```text
/// q · k / √d + q · (height_rel[y' - y] + width_rel[x' - x]).
/// ```
///
/// If `stride` is 2, the output is averaged over 2x2 pixels. The parameters are `qkv.weight` [3 C, C, 1, 1],
/// `pos_embed.height_rel` [2 H - 1, d] and `pos_embed.width_rel` [2 W - 1, d].
struct BottleneckAttention {
  BottleneckAttention(const nn::Scope& scope, std::int64_t channels, const nn::Size2& size, std::int64_t stride);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  nn::Size2 size;  ///< of the input map
  std::int64_t stride;
  std::int64_t head_dim;  ///< d, of queries and keys
  std::string name;       ///< path of the layer, by which a recorder gets the attention map
  nn::Conv2d qkv;
  Tensor height_rel;
  Tensor width_rel;
};

/// timm's byobnet BottleneckBlock or, with attention, SelfAttnBlock:
///
/// ```text
/// act(shortcut(x) + drop_path(conv3_1x1(z))),   z = conv2_kxk(conv1_1x1(x)) or
/// act(post_attn(self_attn(conv1_1x1(x))))
/// ```
///
/// Each convolution is followed by its norm and activation, except that the last has no activation of its own.
struct BotNetBlock {
  /// The place of a block in the network.
  struct Place {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t stride = 1;
    bool attends = false;
    nn::Size2 size = {0, 0};  ///< of the input map
    float drop_path = 0;
  };
  BotNetBlock(const nn::Scope& scope, const BotNetConfig& config, const Place& place);
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  ops::Activation activation;
  std::optional<nn::ConvNorm> shortcut;
  nn::ConvNorm conv1_1x1;
  std::optional<nn::ConvNorm> conv2_kxk;
  std::optional<BottleneckAttention> self_attn;
  std::optional<nn::BatchNorm2d> post_attn;
  nn::ConvNorm conv3_1x1;
  nn::DropPath drop_path;
};

/// The network: x [B, C, H, W] → stem of three convolutions (a quarter of the size) → four stages of two blocks →
/// fc(drop(pool(x))). The last three blocks have attention.
class BotNet {
 public:
  /// Throws Error if the arguments contradict each other.
  BotNet(const nn::Scope& scope, const BotNetConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, C', H', W']
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const;
  std::int64_t depth() const { return 8; }
  /// The layout of the pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head.fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return false; }

 private:
  void check_size(std::int64_t height, std::int64_t width) const;

  nn::Scope scope_;
  BotNetConfig config_;
  std::vector<nn::ConvNorm> stem_;
  std::vector<std::vector<BotNetBlock>> stages_;
  std::optional<nn::Linear> fc_;
};

}  // namespace vitrail::models
