/// \file
/// SimCLR (Chen et al. 2020): the task of `vitrail pretrain simclr`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "vitrail/train/pretrain/view_task.h"

namespace vitrail::train {

/// The options of SimCLR. The encoder's output is what is kept; the projector is left behind.
struct PretrainSimclrOptions : ViewTaskOptions {
  PretrainSimclrOptions();

  double temperature = 0.5;
  std::int64_t projection_dim = 128;
  std::int64_t hidden_dim = 2048;
  std::string batch_stats = "both";  ///< batch norms take their statistics from both views together, or from each view
  double crop_min = 0.08;
  double color_strength = 0.5;

  std::string kind() const override { return "simclr"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainSimclrOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
  /// The transforms of the two views, as the reference makes them.
  std::vector<data::Transform> view_transforms(const data::ImageConfig& images) const;
};

}  // namespace vitrail::train
