/// \file
/// Classes of texts: the task of `vitrail train --task classify` on texts with labels.
#pragma once

#include <memory>
#include <string>

#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {

/// The options of learning the classes of texts.
struct ClassifyTextOptions : TextTaskOptions {
  ClassifyTextOptions();

  /// Parts of a table with a column "split"; of one without, all texts. Empty: all, or none to evaluate on.
  std::string train_split = "train";
  std::string val_split = "validation";
  bool val_split_is_asked = false;  ///< a table without that part is an error; `vitrail eval --split` sets it
  double smoothing = 0;

  std::string kind() const override { return "classify-text"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<ClassifyTextOptions>(*this); }
  void describe(OptionList& list) override;
  /// Opens texts by text::read_labelled_texts(), and a model of the family's …ForSequenceClassification, whose
  /// classifier is new where the folder has another number of classes.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
