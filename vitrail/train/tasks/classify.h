/// \file
/// Classification of images: the task of `vitrail train`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/data/mix.h"
#include "vitrail/train/image_options.h"
#include "vitrail/train/tasks/loss.h"

namespace vitrail::train {

/// The options of classification: those of tasks on images, with model, regularization and distillation.
struct ClassifyOptions : ImageTaskOptions {
  ClassifyOptions() { eval_metric = "top1"; }

  // Model
  std::string pretrained_path;
  std::string initial_checkpoint;
  std::optional<std::int64_t> num_classes;
  std::string gp;
  std::optional<double> drop;
  std::optional<double> drop_path;
  bool linear_probe = false;
  std::optional<std::int64_t> whiten_bias_epochs;

  // Augmentation and regularization
  data::MixOptions mix;
  std::string mixup_mode = "batch";
  double smoothing = 0.1;
  bool bce_loss = false;

  // Distillation
  std::string kd_model_name;
  std::string distillation_type = "hard";
  double distillation_alpha = 0.5;
  std::optional<double> task_loss_weight;
  std::optional<double> distill_loss_weight;
  double kd_temperature = 1;
  std::string unlabeled_dir;

  std::int64_t tta = 0;

  std::string kind() const override { return "classify"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<ClassifyOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

/// The kind of distillation and the weights of its losses: --distillation-alpha, or timm's --task-loss-weight and
/// --distill-loss-weight. Of these, the first alone makes the second 1 minus it, and the second alone makes the first
/// 1.
Distillation distillation_options(const ClassifyOptions& options);

}  // namespace vitrail::train
