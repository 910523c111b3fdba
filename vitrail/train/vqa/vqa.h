/// \file
/// Questions about images: the task of `vitrail train --task vqa`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of questions. The words and the answers of a new network are those of the training questions.
struct VqaOptions : ImageTaskOptions {
  VqaOptions();

  // Data
  std::int64_t questions_per_image = 8;
  std::int64_t most_answers = 3000;

  // Model
  std::string attn_norm = "softmax";
  double attn_loss_coef = 0;
  double drop = 0;

  std::string kind() const override { return "vqa"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<VqaOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
