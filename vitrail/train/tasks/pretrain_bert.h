/// \file
/// Masked language modelling and the prediction of the next sentence (BERT: Devlin et al. 2019), which need texts
/// alone: the task of `vitrail pretrain bert`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {

/// The options of pretraining an encoder on texts.
struct PretrainBertOptions : TextTaskOptions {
  PretrainBertOptions();

  double mask_prob = 0.15;
  bool whole_words = false;
  bool no_next_sentence = false;
  std::string examples;

  std::string kind() const override { return "bert"; }
  std::string command() const override { return "vitrail pretrain"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<PretrainBertOptions>(*this); }
  void describe(OptionList& list) override;
  /// Opens documents, which blank lines part, of sentences, one a line; or examples that are masked already. The model
  /// is the family's …ForPreTraining, or, where it has none, …ForMaskedLM, which does not predict the next sentence.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
