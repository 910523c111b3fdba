/// \file
/// Pictures as a language: the task of `vitrail train --task pixels`, which learns to predict the next pixel (Image
/// GPT: Chen et al. 2020).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of learning the next pixel.
struct PixelOptions : ImageTaskOptions {
  PixelOptions();

  std::int64_t clusters = 512;  ///< colours that pixels are told by
  std::optional<double> drop;

  std::string kind() const override { return "pixels"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PixelOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
