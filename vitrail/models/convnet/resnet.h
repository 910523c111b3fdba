/// \file
/// Residual networks: timm's ResNet with its stems, groups (ResNeXt) and attention inside the blocks, and with SAGAN's
/// attention between the stages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/images/image_attention.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

/// timm's arguments under timm's names.
struct ResNetConfig {
  enum class Block { basic, bottleneck };
  enum class Stem { plain, deep, deep_tiered };
  enum class Attention { none, se, nl };

  Block block = Block::bottleneck;
  std::vector<std::int64_t> layers = {3, 4, 6, 3};           ///< blocks of each stage
  std::vector<std::int64_t> channels = {64, 128, 256, 512};  ///< of each stage; a bottleneck block outputs
                                                             ///< four times as many
  std::int64_t num_classes = 1000;                           ///< 0: no head, the pooled features come out
  std::int64_t in_chans = 3;
  std::int64_t output_stride = 32;  ///< 8 or 16: the last stages have dilation in place of a stride
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t cardinality = 1;  ///< groups of a bottleneck's 3x3 convolution
  std::int64_t base_width = 64;  ///< each group has ⌊channels · base_width / 64⌋ channels
  std::int64_t stem_width = 64;
  Stem stem_type = Stem::plain;         ///< a 7x7 convolution; deep ones have three of 3x3
  std::int64_t block_reduce_first = 1;  ///< divisor of the width of a block's first convolution
  std::int64_t down_kernel_size = 1;    ///< of the shortcuts' convolutions
  bool avg_down = false;                ///< average pooling before them in place of a stride
  ops::Activation act_layer = ops::Activation::relu;
  double drop_rate = 0;                   ///< before the head
  double drop_path_rate = 0;              ///< of the last block; it grows linearly from 0
  bool zero_init_last = true;             ///< each block starts as its shortcut: last norm 0
  Attention attention = Attention::none;  ///< attn_layer of block_args

  /// For attn_layer 'nl': nl_kind of block_args. timm has only the embedded Gaussian; the other kinds are vitrail's.
  nn::NonLocal::Kind nl_kind = nn::NonLocal::Kind::embedded_gaussian;
  /// An argument of vitrail's own: SAGAN's attention follows these stages, counted from 1; its parameters are `attn1` …
  std::vector<std::int64_t> sagan_stages;
  nn::Size2 img_size = {224, 224};  ///< the size that the model is intended for; it takes all sizes
};

/// Reads timm's arguments of a ResNet. Throws Error, which names `source`, for one that is unknown or out of range.
ResNetConfig read_resnet(const nlohmann::json& arguments, const std::string& source);

/// The shortcut of a block whose shape changes: the projected input, which is added to the output of the convolutions.
struct ResNetShortcut {
  ResNetShortcut(const nn::Scope& scope, const ResNetConfig& config, std::int64_t in, std::int64_t out,
                 std::int64_t stride, std::int64_t dilation, std::int64_t first_dilation);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  bool pool;  ///< average over 2x2 pixels before the projection
  nn::ConvNorm projection;
};

/// A residual block, timm's BasicBlock (two convolutions) or Bottleneck (three), which maps x [B, C, H, W] to
/// [B, C', H / s, W / s]:
///
/// ```text
/// act(shortcut(x) + drop_path(attention(norm(conv(… act(norm(conv(x))))))))
/// ```
///
/// In inference it may overwrite x if x is moved in.
struct ResNetBlock {
  /// The place of a block in the network.
  struct Place {
    std::int64_t in = 0;
    std::int64_t channels = 0;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t first_dilation = 1;
    bool first = false;  ///< whether it is the first block of its stage
    float drop_path = 0;
  };
  ResNetBlock(const nn::Scope& scope, const ResNetConfig& config, const Place& place);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;

  ops::Activation activation;
  std::vector<nn::ConvNorm> layers;                                         ///< `conv1` and `bn1`, …
  std::variant<std::monostate, nn::SqueezeExcite, nn::NonLocal> attention;  ///< named `se` in either case
  std::optional<ResNetShortcut> downsample;
  nn::DropPath drop_path;
};

/// Deep Residual Learning (He et al. 2016): x [B, C, H, W] → stem (a quarter of the size) → stages of blocks, each of
/// half the size of the one before → fc(drop(pool(x))) [B, num_classes].
class ResNet {
 public:
  /// Throws Error if the arguments contradict each other.
  ResNet(const nn::Scope& scope, const ResNetConfig& config);

  /// Returns [B, C', H', W']. The features of each stage go to the pass's recorder, as those of the stem if the network
  /// stands `in_front` of the blocks of a hybrid.
  Tensor forward_features(const Tensor& x, nn::Pass& pass, bool in_front = false) const;
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const;
  std::int64_t depth() const;
  /// The layout of the pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return true; }
  bool has_attention() const {
    return config_.attention == ResNetConfig::Attention::nl || !config_.sagan_stages.empty();
  }
  const ResNetConfig& config() const { return config_; }

 private:
  nn::Size2 stem_size(const nn::Size2& size) const;
  Tensor stem(const Tensor& x, const nn::Pass& pass) const;

  nn::Scope scope_;
  ResNetConfig config_;
  std::vector<nn::ConvNorm> stem_;
  std::vector<std::vector<ResNetBlock>> stages_;
  std::map<std::size_t, nn::SaganAttention> sagan_;  ///< by stage
  std::optional<nn::Linear> fc_;
};

}  // namespace vitrail::models
