/// \file
/// Autoencoders: an encoder of images, a bottleneck of few numbers, and a decoder that makes images of these.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/images/conv.h"

namespace vitrail::train {

/// What a LatentDecoder is made of.
struct LatentDecoderConfig {
  std::string kind = "transformer";  ///< or "conv"
  std::int64_t latent_dim = 0;
  std::int64_t channels = 3;
  nn::Size2 image = {0, 0};    ///< rows and columns of pixels
  std::int64_t dim = 128;      ///< width of the tokens, or channels of the smallest map
  std::int64_t depth = 2;      ///< blocks, or convolutions at each size of the map
  std::int64_t heads = 4;      ///< of a transformer
  nn::Size2 patch = {16, 16};  ///< of a transformer, which divides the image
};

/// Decodes z [B, latent_dim] to images [B, C, H, W]. A transformer has a token for each patch, which are a linear map
/// of z at first:
///
/// ```text
/// x = reshape(embed(z), [B, N, D]),   x = block(x), depth times,   patches = pred(norm(x))
/// ```
///
/// A convolutional decoder begins with a linear map of z to the smallest map, the image halved as long as its sides are
/// even and stay at 4 pixels or more. After `depth` times relu(norm(3x3 convolution)), a map is doubled to its nearest
/// pixels and its channels are halved (16 are left at least); a 3x3 convolution of the last one gives the pixels. The
/// norms are group norms, so that an image does not depend on others.
///
/// Parameters: `embed`; `blocks.i`, `norm` and `pred`, or `convs.i`, `norms.i` and `pred`.
class LatentDecoder {
 public:
  /// Throws Error if the sizes do not fit each other.
  LatentDecoder(const nn::Scope& scope, const LatentDecoderConfig& config);
  Tensor operator()(const Tensor& z, nn::Pass& pass) const;  ///< [B, C, H, W] f32
  const LatentDecoderConfig& config() const { return config_; }

 private:
  Tensor by_tokens(const Tensor& tokens, nn::Pass& pass) const;
  Tensor by_convolutions(Tensor map) const;

  LatentDecoderConfig config_;
  nn::Size2 grid_ = {0, 0};  ///< of patches, or the size of the smallest map
  nn::Linear embed_;
  std::vector<nn::Block> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> pred_;
  std::vector<nn::Conv2d> convs_;
  std::vector<nn::GroupNorm> norms_;
  std::optional<nn::Conv2d> pixels_;
};

/// Any image model with a decoder. The bottleneck is the model's classifier, a linear map of its pooled features to as
/// many numbers as it has classes, so that encoder and bottleneck are a model folder in timm's layout; beside it lies
/// `decoder.safetensors`, whose metadata say what the decoder is made of.
class Autoencoder final : public nn::Network {
 public:
  /// With a new decoder for images as the model takes them, whose `latent_dim` are the model's classes. Throws Error if
  /// it has none.
  Autoencoder(models::Model image_model, LatentDecoderConfig config);
  /// Opens the folder that save() wrote. Throws Error if it has no decoder.
  static std::unique_ptr<Autoencoder> open(const std::filesystem::path& folder);
  /// Writes a folder, whole or not at all.
  void save(const std::filesystem::path& folder) const;

  std::int64_t latent_dim() const { return encoder.net->num_classes(); }
  /// The latent vectors [B, latent_dim] f32 of images x [B, C, H, W].
  Tensor encode(const Tensor& x, nn::Pass& pass) const { return encoder.net->forward(x, pass); }
  Tensor decode(const Tensor& z, nn::Pass& pass) const { return (*decoder)(z, pass); }
  /// The mean squared error between images, normalized as the model takes them, and what is decoded of them, over all
  /// pixels and channels: a scalar f32.
  Tensor loss(const Tensor& x, nn::Pass& pass) const;

  std::int64_t depth() const override { return encoder.net->depth(); }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override;
  bool is_head(const std::string& parameter) const override;

  models::Model encoder;
  std::optional<LatentDecoder> decoder;
};

/// Whether a folder is that of an autoencoder.
bool is_autoencoder(const std::filesystem::path& folder);

}  // namespace vitrail::train
