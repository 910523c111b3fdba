// Residual networks with the norms in front: timm's ResNetV2, and its form without, which hybrid Vision Transformers
// begin with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/picture.h"

namespace vitrail::models {

// timm's arguments under timm's names.
struct ResNetV2Config {
  enum class Stem { plain, deep, tiered };       // a 7x7 convolution, or three of 3x3
  enum class StemPool { even, zeros, by_size };  // how its max pooling pads: timm's '', 'fixed' and 'same'

  std::vector<std::int64_t> layers = {3, 4, 6, 3};              // blocks of each stage
  std::vector<std::int64_t> channels = {256, 512, 1024, 2048};  // that each stage gives out, times width_factor
  std::int64_t num_classes = 1000;                              // 0: no head, the pooled features come out
  std::int64_t in_chans = 3;
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t width_factor = 1;
  std::int64_t stem_chs = 64;  // times width_factor
  Stem stem_type = Stem::plain;
  StemPool stem_pool = StemPool::even;
  bool avg_down = false;       // average pooling in front of the shortcuts
  bool preact = true;          // norm and activation in front of convolutions
  bool basic = false;          // blocks of two convolutions
  double bottle_ratio = 0.25;  // of the channels inside a block
  ops::Activation act_layer = ops::Activation::relu;
  nn::PictureNormKind norm_layer = nn::PictureNormKind::group;
  nn::ConvStyle conv_layer = {.standardize = 1e-6F};
  double drop_rate = 0;             // before the head
  double drop_path_rate = 0;        // of the last block; it grows linearly from 0
  bool zero_init_last = false;      // each block starts as its shortcut
  nn::Size2 img_size = {224, 224};  // that the model is meant for; all are taken

  std::int64_t stem_channels() const;  // that the stem gives out
  std::int64_t out_channels() const;   // that the last stage gives out; the stem, if there is none
};

// Error if the arguments contradict each other.
void check_resnetv2(const ResNetV2Config& config);
// Not less than the multiply-accumulates of a picture.
double resnetv2_cost(const ResNetV2Config& config, double height, double width);
// timm's init_weights, for names that begin with `prefix`.
nn::InitRule resnetv2_init_rule(const ResNetV2Config& config, const std::string& prefix);

// x [B, C, H, W] → a quarter of the size: convolutions, norms between them, max pooling. With preact the last norm is
// left to the first block.
struct ResNetV2Stem {
  ResNetV2Stem(const nn::Scope& scope, const ResNetV2Config& config);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

  ResNetV2Config::StemPool pool;
  ops::Activation activation;
  std::vector<nn::StyledConv2d> convs;
  std::vector<nn::PictureNorm> norms;
};

// With preact (He et al. 2016, "Identity Mappings"), timm's PreActBottleneck or PreActBasic, a = act(norm1(x)):
//   y = shortcut(a or x) + drop_path(conv(… act(norm2(conv1(a)))))
// else timm's resnetv2 Bottleneck:
//   y = act(shortcut(x) + drop_path(norm(conv(… act(norm1(conv1(x)))))))
struct ResNetV2Block {
  ResNetV2Block(const nn::Scope& scope, const ResNetV2Config& config, std::int64_t in, std::int64_t out,
                std::int64_t stride, bool first, float drop_path);
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

  struct Shortcut {
    Shortcut(const nn::Scope& scope, const ResNetV2Config& config, std::int64_t in, std::int64_t out,
             std::int64_t stride);
    Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
    std::int64_t flops(nn::Size2 size) const;

    bool pool;  // 2x2 averages first
    nn::StyledConv2d conv;
    std::optional<nn::PictureNorm> norm;
  };

  bool preact;
  ops::Activation activation;
  std::vector<nn::StyledConv2d> convs;  // `conv1` …
  std::vector<nn::PictureNorm> norms;   // `norm1` …
  std::optional<Shortcut> downsample;
  nn::DropPath drop_path;
};

// Stem, stages and final norm, without a head: x [B, C, H, W] → [B, C', H', W'] in the pass's dtype.
class ResNetV2Body {
 public:
  ResNetV2Body(const nn::Scope& scope, const ResNetV2Config& config);
  // Features of stage i go to the pass's recorder, as the stem's if it stands `in_front` of a hybrid's blocks.
  Tensor operator()(const Tensor& x, nn::Pass& pass, bool in_front) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

 private:
  ops::Activation activation_;
  ResNetV2Stem stem_;
  std::vector<std::vector<ResNetV2Block>> stages_;
  std::optional<nn::PictureNorm> norm_;
};

// x [B, C, H, W] → body → fc(drop(pool(x))) [B, num_classes].
class ResNetV2 : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit ResNetV2(const ResNetV2Config& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return config_.out_channels(); }
  std::int64_t depth() const override;
  // The pixels of the last stage.
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head.fc."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return true; }
  const ResNetV2Config& config() const { return config_; }

 private:
  ResNetV2Config config_;
  std::optional<ResNetV2Body> body_;
  std::optional<nn::Conv2d> fc_;
};

}  // namespace vitrail::models
