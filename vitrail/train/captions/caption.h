/// \file
/// Captions: the task of `vitrail train --task caption`, which learns to say what is in a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of captions: of images that have some (data::open_captioned_images()), of which each step takes one of
/// an image's, or of classes, whose names are then the captions.
struct CaptionTaskOptions : ImageTaskOptions {
  CaptionTaskOptions();

  // Data
  std::string tokenizer;
  std::int64_t vocab_size = 1000;
  std::int64_t captions_per_image = 1;
  std::int64_t max_length = 64;

  // Model
  std::string decoder = "lstm";
  std::string decoder_kwargs = "{}";  ///< fields of the decoder as a JSON object
  /// Transformer layers between an image model without attention and a gpt2 decoder; unset: 2, or none behind
  /// attention.
  std::optional<std::int64_t> encoder_layers;
  double drop = 0;
  double smoothing = 0;
  double attn_loss_coef = 0;  ///< of guided_caption_loss()

  std::string kind() const override { return "caption"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<CaptionTaskOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
