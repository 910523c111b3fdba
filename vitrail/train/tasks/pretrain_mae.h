/// \file
/// Masked autoencoders (He et al. 2022), which learn from images without labels: the task of `vitrail pretrain mae`.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "vitrail/models/vit/mae.h"
#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of pretraining a masked autoencoder: those of tasks on images, with mask, target and decoder.
struct PretrainMaeOptions : ImageTaskOptions {
  /// The defaults of the reference (https://github.com/facebookresearch/mae, main_pretrain.py), with a small encoder.
  PretrainMaeOptions();

  double mask_ratio = 0.75;
  bool norm_pix_loss = true;
  std::int64_t decoder_dim = 512;
  std::int64_t decoder_depth = 8;
  std::int64_t decoder_heads = 16;

  std::string kind() const override { return "mae"; }
  std::string command() const override { return "vitrail pretrain"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainMaeOptions>(*this); }
  void describe(OptionList& list) override;
  std::set<std::string> retired_options() const override;
  /// Opens all images of the data, whatever their classes, and a masked autoencoder around the Vision Transformer
  /// `model`. If `model` is the folder of a masked autoencoder, it opens that one.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

/// The loss of a masked autoencoder for images x [B, C, H, W]. The masked patches are drawn from the random stream of
/// the pass.
Tensor masked_autoencoding_loss(const models::MaskedAutoencoder& mae, const Tensor& x, nn::Pass& pass);

}  // namespace vitrail::train
