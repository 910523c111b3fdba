/// \file
/// Translation: the task of `vitrail train --task translate`, which learns from texts and their translations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/task.h"

namespace vitrail::train {

/// The options of translation. The defaults are the recipe of Vaswani et al. 2017, section 5, for less data: Adam, a
/// rate that grows and then falls with the inverse square root of the updates, label smoothing; and a moving average of
/// the weights for the paper's average of checkpoints. A batch is counted in tokens of its targets.
struct TranslationOptions : TaskOptions {
  TranslationOptions();

  // Data
  std::string src;
  std::string tgt;
  std::string val_src;
  std::string val_tgt;
  std::string tokenizer;
  std::int64_t vocab_size = 8000;
  std::string pieces = "unigram";
  std::int64_t max_length = 256;
  bool no_shuffle = false;
  bool skip_broken = false;

  // Model
  std::string model = "transformer-small";
  std::string model_kwargs = "{}";  ///< fields of config.json as a JSON object
  std::optional<double> drop;
  double smoothing = 0.1;

  std::string kind() const override { return "translate"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<TranslationOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
