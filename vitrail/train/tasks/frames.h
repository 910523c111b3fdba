/// \file
/// Sequences of images: the task of `vitrail train --task frames`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of sequences of images, of which a class, a class of each frame or the angle of each frame is learned.
struct FrameTaskOptions : ImageTaskOptions {
  FrameTaskOptions();

  // Data
  std::string frames;
  std::int64_t max_frames = 0;
  bool circular = false;

  // Model
  std::string target = "sequence";
  std::int64_t angle_bins = 0;
  std::string cell = "lstm";
  std::string cell_kwargs = "{}";  ///< fields of the recurrent network as a JSON object
  double drop = 0;
  double smoothing = 0;

  /// Whether a part of the data, --val-split, is evaluated on.
  bool has_part_apart() const;
  /// The share of the sequences that is held out; 0 where there are others to evaluate on, or none are wanted.
  double held_out() const;

  std::string kind() const override { return "frames"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<FrameTaskOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
