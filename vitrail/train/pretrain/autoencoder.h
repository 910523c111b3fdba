/// \file
/// Autoencoders with a bottleneck: the task of `vitrail pretrain autoencoder`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/train/image_options.h"
#include "vitrail/train/pretrain/autoencoder_network.h"

namespace vitrail::train {

/// The options of an autoencoder.
struct PretrainAutoencoderOptions : ImageTaskOptions {
  PretrainAutoencoderOptions();

  std::int64_t latent_dim = 32;
  std::string decoder = "auto";  ///< "transformer", "conv"; "auto" goes by the encoder
  std::int64_t decoder_dim = 128;
  std::int64_t decoder_depth = 2;
  std::int64_t decoder_heads = 4;

  std::string kind() const override { return "autoencoder"; }
  std::string command() const override { return "vitrail pretrain"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainAutoencoderOptions>(*this); }
  void describe(OptionList& list) override;
  /// Opens all images of the data, whatever their classes, and an autoencoder around any image model with a classifier.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

/// An image with a row for each of `inputs` ([1, C, H, W], as the model takes them): the original, and what is decoded
/// of its latent vector.
io::Image autoencoder_sheet(const Autoencoder& model, const std::vector<Tensor>& inputs, DType dtype = DType::f32);

}  // namespace vitrail::train
