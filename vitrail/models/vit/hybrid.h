/// \file
/// The convolutional networks in front of hybrid Vision Transformers.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "vitrail/models/convnet/resnet.h"
#include "vitrail/models/convnet/resnetv2.h"
#include "vitrail/nn/images/image_layers.h"

namespace vitrail::models {

struct ConvStemConfig {
  std::int64_t in_chans = 3;
  std::int64_t dim = 768;  ///< channels of the output, the width of the tokens; the convolutions before have a quarter
};

/// The stem of MobileCLIP's largest image encoder (Vasu et al. 2024), timm's ConvStem as vit_base_mci_224 has it: three
/// convolutions that cut patches of 4x4, 2x2 and 2x2 pixels, with a batch norm and GELU behind the first two. Maps x
/// [B, C, H, W] to tokens' features [B, dim, H / 16, W / 16]. Parameters `0.conv`, `0.bn`, `1.conv`, `1.bn` and
/// `2.conv`.
struct ConvStem {
  ConvStem(const nn::Scope& scope, const ConvStemConfig& config);
  Tensor operator()(const Tensor& x, const nn::Pass& pass) const;
  std::int64_t flops(nn::Size2& size) const;
  nn::Size2 output_size(const nn::Size2& size) const;

  std::vector<nn::ConvNorm> layers;
  nn::Conv2d last;
};

/// What stands in front of the patches: a ResNetV2, of which only the stem is used if it has no layers, a ResNet, or a
/// ConvStem, whose pixels are the tokens.
using HybridConfig = std::variant<ResNetV2Config, ResNetConfig, ConvStemConfig>;

/// How many pixels of the image correspond to one pixel of the output, along a side.
std::int64_t hybrid_stride(const HybridConfig& config);

/// The network that a HybridConfig describes: x [B, C, H, W] → [B, C', H', W'] in the pass's dtype.
class HybridBackbone {
 public:
  /// Throws Error if the arguments contradict each other.
  HybridBackbone(const nn::Scope& scope, const HybridConfig& config);
  /// Runs the network. The features of each stage go to the pass's recorder as those of the stem.
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t out_channels() const;
  nn::Size2 output_size(const nn::Size2& size) const;
  std::int64_t flops(const nn::Size2& size) const;

 private:
  HybridConfig config_;
  std::variant<ResNetV2Stem, ResNetV2Body, ResNet, ConvStem> network_;
};

/// Whether a parameter below the backbone's own name is the weight of the first convolution.
bool is_first_convolution(std::string_view parameter);

}  // namespace vitrail::models
