/// \file
/// Images and texts in one space: the task of `vitrail pretrain clip`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of learning from pairs of images and texts (CLIP: Radford et al. 2021; SigLIP: Zhai et al. 2023).
struct PretrainClipOptions : ImageTaskOptions {
  PretrainClipOptions();

  // Data
  std::string data;
  std::string val_data;
  double val_share = 0.1;
  std::string tokenizer;
  std::int64_t vocab_size = 4096;

  // Model
  std::string vision_kwargs = "{}";  ///< fields of a new model's vision_config as a JSON object
  std::string text_kwargs = "{}";    ///< and of its text_config
  std::int64_t projection_dim = 128;

  std::string loss = "clip";

  std::string kind() const override { return "clip"; }
  std::string command() const override { return "vitrail pretrain"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainClipOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
