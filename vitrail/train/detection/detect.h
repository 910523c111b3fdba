/// \file
/// Detection: the task of `vitrail train --task detect`, which learns to find objects and draw boxes around them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/detection/criterion.h"
#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// The options of detection, by the names of facebookresearch/detr's flags where it has them, and with its defaults:
/// AdamW at 1e-4 and 1e-5 for the backbone, weight decay 1e-4 of all parameters, gradients of at most norm 0.1, 300
/// epochs. But the rate grows in the first epochs, without which a transformer on a backbone that learns too often
/// stays where it begins for thousands of updates, and falls by a cosine, where the original's becomes a tenth after
/// epoch 200.
struct DetectionOptions : ImageTaskOptions {
  DetectionOptions();

  // Model
  std::string initial_checkpoint;
  std::string backbone_norm = "auto";
  std::optional<std::int64_t> num_classes;
  std::optional<std::int64_t> num_queries;
  std::optional<std::int64_t> shortest_edge;
  std::optional<std::int64_t> longest_edge;
  std::optional<double> drop;

  // Loss
  MatchCosts costs;
  SetLossWeights weights;
  bool no_aux_loss = false;

  // Augmentation
  double hflip = 0.5;
  bool no_random_resize = false;

  std::string kind() const override { return "detect"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<DetectionOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
