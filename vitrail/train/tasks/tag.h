/// \file
/// A label for each word of a sentence: the task of `vitrail train --task tag`.
#pragma once

#include <memory>
#include <string>

#include "vitrail/train/tasks/text_options.h"

namespace vitrail::train {

/// The options of learning labels of words.
struct TagOptions : TextTaskOptions {
  TagOptions();

  std::string kind() const override { return "tag"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<TagOptions>(*this); }
  void describe(OptionList& list) override;
  /// Opens sentences by text::read_tagged_sentences(), and a model of the family's …ForTokenClassification. The first
  /// token of a word has its label, and the others none, as in transformers' examples.
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
