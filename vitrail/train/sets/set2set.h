/// \file
/// Sets in, sets out: the task of `vitrail train --task set2set`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "vitrail/train/sets/sets.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// The options of sets.
struct Set2SetOptions : TaskOptions {
  Set2SetOptions();

  // Data
  std::string data_dir;
  std::string train_split = "train";
  std::string val_split = "validation";
  std::string val_dir;

  // Model
  std::string model = "set2set";
  std::string model_kwargs = "{}";
  std::optional<std::int64_t> num_queries;
  double drop = 0;

  // Loss
  SetWeights weights;
  bool no_aux_loss = false;
  double tolerance = 0.05;

  std::string kind() const override { return "set2set"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<Set2SetOptions>(*this); }
  void describe(OptionList& list) override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
