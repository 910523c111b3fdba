// Residual networks: timm's ResNet with its stems, groups (ResNeXt) and attention inside the blocks, and SAGAN's
// attention between its stages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/picture.h"
#include "vitrail/nn/picture_attention.h"

namespace vitrail::models {

// timm's arguments under timm's names.
struct ResNetConfig {
  enum class Block { basic, bottleneck };
  enum class Stem { plain, deep, deep_tiered };
  enum class Attention { none, se, nl };

  Block block = Block::bottleneck;
  std::vector<std::int64_t> layers = {3, 4, 6, 3};           // blocks of each stage
  std::vector<std::int64_t> channels = {64, 128, 256, 512};  // of each stage; a bottleneck gives out four times as many
  std::int64_t num_classes = 1000;                           // 0: no head, the pooled features come out
  std::int64_t in_chans = 3;
  std::int64_t output_stride = 32;  // 8 or 16: the last stages dilate instead of striding
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t cardinality = 1;  // groups of a bottleneck's 3x3 convolution, and
  std::int64_t base_width = 64;  // their width: ⌊channels · base_width / 64⌋ each
  std::int64_t stem_width = 64;
  Stem stem_type = Stem::plain;         // a 7x7 convolution, or three of 3x3
  std::int64_t block_reduce_first = 1;  // narrows the first convolution of a block
  std::int64_t down_kernel_size = 1;    // of the shortcuts' convolutions
  bool avg_down = false;                // average pooling before them instead of a stride
  ops::Activation act_layer = ops::Activation::relu;
  double drop_rate = 0;                   // before the head
  double drop_path_rate = 0;              // of the last block; it grows linearly from 0
  bool zero_init_last = true;             // each block starts as its shortcut
  Attention attention = Attention::none;  // block_args: attn_layer
  // Of attn_layer 'nl', block_args: nl_kind. timm has the embedded Gaussian alone; the others are vitrail's.
  nn::NonLocal::Kind nl_kind = nn::NonLocal::Kind::embedded_gaussian;
  // vitrail's: SAGAN's attention behind these stages, counted from 1, as `attn1` …
  std::vector<std::int64_t> sagan_stages;
  nn::Size2 img_size = {224, 224};  // that the model is meant for; all are taken
};

// What is added to a block's convolutions: the input, or its projection where the shape changes.
struct ResNetShortcut {
  ResNetShortcut(const nn::Scope& scope, const ResNetConfig& config, std::int64_t in, std::int64_t out,
                 std::int64_t stride, std::int64_t dilation, std::int64_t first_dilation);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  bool pool;  // 2x2 averages first
  nn::ConvNorm projection;
};

// A residual block, timm's BasicBlock (two convolutions) or Bottleneck (three), x [B, C, H, W] → [B, C', H / s, W / s]:
//   act(shortcut(x) + drop_path(attention(norm(conv(… act(norm(conv(x))))))))
// In inference it may write over x, where that is moved in.
struct ResNetBlock {
  struct Place {
    std::int64_t in = 0;
    std::int64_t channels = 0;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t first_dilation = 1;
    bool first = false;  // of its stage
    int index = 0;       // in the network
    float drop_path = 0;
  };
  ResNetBlock(const nn::Scope& scope, const ResNetConfig& config, const Place& place);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  ops::Activation activation;
  std::vector<nn::ConvNorm> layers;                                         // `conv1` and `bn1`, …
  std::variant<std::monostate, nn::SqueezeExcite, nn::NonLocal> attention;  // `se`, whichever it is
  std::optional<ResNetShortcut> downsample;
  nn::DropPath drop_path;
};

// Deep Residual Learning (He et al. 2016). x [B, C, H, W] → stem (a quarter of the size) → stages of blocks, each half
// of the size of the one before → fc(drop(pool(x))) [B, num_classes].
class ResNet : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit ResNet(const ResNetConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override;
  std::int64_t depth() const override;
  // The pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return true; }
  const ResNetConfig& config() const { return config_; }

 private:
  nn::Size2 stem_size(const nn::Size2& size) const;
  Tensor stem(const Tensor& x, const nn::Pass& pass) const;

  ResNetConfig config_;
  std::vector<nn::ConvNorm> stem_;
  std::vector<std::vector<ResNetBlock>> stages_;
  std::map<std::size_t, nn::SaganAttention> sagan_;  // by stage
  std::optional<nn::Linear> fc_;
};

}  // namespace vitrail::models
