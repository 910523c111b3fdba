/// \file
/// DINO (Caron et al. 2021), self-distillation without labels: the task of `vitrail pretrain dino`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/train/pretrain/view_task.h"

namespace vitrail::train {

/// The options of DINO, by the reference's names and with its values (facebookresearch/dino, main_dino.py).
struct PretrainDinoOptions : ViewTaskOptions {
  PretrainDinoOptions();

  std::int64_t out_dim = 65536;
  bool norm_last_layer = true;
  bool use_bn_in_head = false;
  std::int64_t head_hidden_dim = 2048;
  std::int64_t head_bottleneck_dim = 256;
  double momentum_teacher = 0.996;
  double warmup_teacher_temp = 0.04;
  double teacher_temp = 0.04;
  std::int64_t warmup_teacher_temp_epochs = 0;
  double student_temp = 0.1;
  double center_momentum = 0.9;
  std::int64_t freeze_last_layer = 1;
  std::int64_t local_crops_number = 8;
  std::optional<std::int64_t> local_crops_size;
  std::optional<std::pair<double, double>> global_crops_scale = std::pair(0.4, 1.0);
  std::optional<std::pair<double, double>> local_crops_scale = std::pair(0.05, 0.4);

  std::string kind() const override { return "dino"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainDinoOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;

  /// The temperature of the teacher in an epoch, from 0: a linear warm-up, as numpy's linspace, then teacher_temp.
  double teacher_temperature(std::int64_t epoch) const;
  /// What makes the views of an image: two global crops of the size of `images`, then the local ones of `local_size`
  /// pixels.
  std::vector<data::Transform> view_transforms(const data::ImageConfig& images, std::int64_t local_size) const;
};

}  // namespace vitrail::train
