/// \file
/// Residual networks whose norms come before the convolutions: timm's ResNetV2, also in the form with the norms behind
/// them, with which hybrid Vision Transformers begin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/images/image_layers.h"

namespace vitrail::models {

/// timm's arguments under timm's names.
struct ResNetV2Config {
  enum class Stem { plain, deep, tiered };       ///< a 7x7 convolution; the others have three of 3x3
  enum class StemPool { even, zeros, by_size };  ///< padding of its max pooling: timm's '', 'fixed' and 'same'

  std::vector<std::int64_t> layers = {3, 4, 6, 3};              ///< blocks of each stage
  std::vector<std::int64_t> channels = {256, 512, 1024, 2048};  ///< outputs of each stage, before width_factor
  std::int64_t num_classes = 1000;                              ///< 0: no head, the pooled features come out
  std::int64_t in_chans = 3;
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t width_factor = 1;
  std::int64_t stem_chs = 64;  ///< before width_factor
  Stem stem_type = Stem::plain;
  StemPool stem_pool = StemPool::even;
  bool avg_down = false;       ///< average pooling before the convolutions of the shortcuts
  bool preact = true;          ///< norm and activation come before each convolution
  bool basic = false;          ///< blocks of two convolutions
  double bottle_ratio = 0.25;  ///< channels inside a block as a fraction of its outputs
  ops::Activation act_layer = ops::Activation::relu;
  nn::Norm2dKind norm_layer = nn::Norm2dKind::group;
  nn::ConvStyle conv_layer = {.standardize = 1e-6F};
  double drop_rate = 0;             ///< before the head
  double drop_path_rate = 0;        ///< of the last block; it grows linearly from 0
  bool zero_init_last = false;      ///< each block starts as its shortcut
  nn::Size2 img_size = {224, 224};  ///< the size that the model is intended for; it takes all sizes

  std::int64_t stem_channels() const;  ///< output channels of the stem
  std::int64_t out_channels() const;   ///< output channels of the last stage, or of the stem if there is none
};

/// Throws Error if the arguments contradict each other.
void check_resnetv2(const ResNetV2Config& config);
/// An upper bound of the multiply-accumulates for one image.
double resnetv2_cost(const ResNetV2Config& config, double height, double width);
/// The rule of timm's init_weights.
nn::InitRule resnetv2_init_rule(const ResNetV2Config& config);

/// The stem: x [B, C, H, W] → a quarter of the size, by convolutions with norms between them and max pooling. With
/// preact, the norm of the last convolution is left to the first block.
struct ResNetV2Stem {
  ResNetV2Stem(const nn::Scope& scope, const ResNetV2Config& config);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

  ResNetV2Config::StemPool pool;
  ops::Activation activation;
  std::vector<nn::StyledConv2d> convs;
  std::vector<nn::Norm2d> norms;
};

/// A residual block. With preact (He et al. 2016, "Identity Mappings in Deep Residual Networks"), it is timm's
/// PreActBottleneck or PreActBasic, where a = act(norm1(x)):
///
/// ```text
/// y = shortcut(a or x) + drop_path(conv(… act(norm2(conv1(a)))))
/// ```
///
/// otherwise it is timm's resnetv2 Bottleneck:
///
/// ```text
/// y = act(shortcut(x) + drop_path(norm(conv(… act(norm1(conv1(x)))))))
/// ```
struct ResNetV2Block {
  ResNetV2Block(const nn::Scope& scope, const ResNetV2Config& config, std::int64_t in, std::int64_t out,
                std::int64_t stride, bool first, float drop_path);
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

  /// The shortcut of a block whose shape changes.
  struct Shortcut {
    Shortcut(const nn::Scope& scope, const ResNetV2Config& config, std::int64_t in, std::int64_t out,
             std::int64_t stride);
    Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
    std::int64_t flops(nn::Size2 size) const;

    bool pool;  ///< average over 2x2 pixels before the convolution
    nn::StyledConv2d conv;
    std::optional<nn::Norm2d> norm;
  };

  bool preact;
  ops::Activation activation;
  std::vector<nn::StyledConv2d> convs;  ///< `conv1` …
  std::vector<nn::Norm2d> norms;        ///< `norm1` …
  std::optional<Shortcut> downsample;
  nn::DropPath drop_path;
};

/// Stem, stages and final norm, without a head: x [B, C, H, W] → [B, C', H', W'] in the pass's dtype.
class ResNetV2Body {
 public:
  ResNetV2Body(const nn::Scope& scope, const ResNetV2Config& config);
  /// Runs the network. The features of each stage go to the pass's recorder, as those of the stem if the network stands
  /// `in_front` of the blocks of a hybrid.
  Tensor operator()(const Tensor& x, nn::Pass& pass, bool in_front) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

 private:
  nn::Scope scope_;
  ops::Activation activation_;
  ResNetV2Stem stem_;
  std::vector<std::vector<ResNetV2Block>> stages_;
  std::optional<nn::Norm2d> norm_;
};

/// The classifier: x [B, C, H, W] → body → fc(drop(pool(x))) [B, num_classes].
class ResNetV2 {
 public:
  /// Throws Error if the arguments contradict each other.
  ResNetV2(const nn::Scope& scope, const ResNetV2Config& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, C', H', W']
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.out_channels(); }
  std::int64_t depth() const;
  /// The layout of the pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head.fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return true; }
  bool has_attention() const { return false; }
  const ResNetV2Config& config() const { return config_; }

 private:
  ResNetV2Config config_;
  std::optional<ResNetV2Body> body_;
  std::optional<nn::Conv2d> fc_;
};

}  // namespace vitrail::models
