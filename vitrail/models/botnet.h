// Bottleneck Transformers: what timm's botnet26t_256 needs of its ByobNet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/picture.h"

namespace vitrail::models {

// timm's arguments under timm's names; its blocks are fixed.
struct BotNetConfig {
  nn::Size2 img_size = {256, 256};  // a multiple of 32: the positions belong to it
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  // 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::avg;
  double width_factor = 1;  // of the channels 64 (stem), 256, 512, 1024 and 2048 (stages)
  ops::Activation act_layer = ops::Activation::relu;
  double drop_rate = 0;        // before the head
  double drop_path_rate = 0;   // of the last block; it grows linearly from 0
  bool zero_init_last = true;  // each block starts as its shortcut
};

// Self-attention over the pixels of x [B, C, H, W] with relative positions (Srinivas et al. 2021), timm's
// BottleneckAttn with 4 heads: the scores of a query at (y, x) and a key at (y', x') are
//   q · k / √d + q · (height_rel[y' - y] + width_rel[x' - x]).
// Averages of 2x2 pixels come out if `stride` is 2. Parameters `qkv.weight` [3 C, C, 1, 1], `pos_embed.height_rel`
// [2 H - 1, d], `pos_embed.width_rel` [2 W - 1, d].
struct BottleneckAttention {
  BottleneckAttention(const nn::Scope& scope, std::int64_t channels, const nn::Size2& size, std::int64_t stride,
                      int index);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  nn::Size2 size;  // of the picture that comes in
  std::int64_t stride;
  std::int64_t head_dim;  // of queries and keys
  int index;              // under which a recorder gets the map
  nn::Conv2d qkv;
  Tensor height_rel;
  Tensor width_rel;
};

// timm's byobnet BottleneckBlock or, with attention, SelfAttnBlock:
//   act(shortcut(x) + drop_path(conv3_1x1(z))),   z = conv2_kxk(conv1_1x1(x)) or
//   act(post_attn(self_attn(conv1_1x1(x))))
// where each convolution has its norm and activation, but for the activation of the last.
struct BotNetBlock {
  struct Place {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t stride = 1;
    bool attends = false;
    nn::Size2 size = {0, 0};  // that comes in
    int index = 0;            // of its attention
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

// x [B, C, H, W] → stem of three convolutions (a quarter of the size) → four stages of two blocks → fc(drop(pool(x))).
// The last three blocks attend.
class BotNet : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit BotNet(const BotNetConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override;
  std::int64_t depth() const override { return 8; }
  // The pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head.fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return false; }

 private:
  void check_size(std::int64_t height, std::int64_t width) const;

  BotNetConfig config_;
  std::vector<nn::ConvNorm> stem_;
  std::vector<std::vector<BotNetBlock>> stages_;
  std::optional<nn::Linear> fc_;
};

}  // namespace vitrail::models
