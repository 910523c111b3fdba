/// \file
/// Language modelling: the task of `vitrail train --task lm`, which learns to predict the next token of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/train/task.h"

namespace vitrail::train {

/// The fact that says how many bytes a character of the text to evaluate on has.
inline constexpr const char* bytes_per_character = "bytes_per_character";

/// The options of language modelling.
struct LanguageOptions : TaskOptions {
  LanguageOptions();

  // Data
  std::string data;
  std::string val_data;
  double val_share = 0.1;
  std::string tokenizer;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> epoch_steps;
  bool no_shuffle = false;
  bool skip_broken = false;
  bool documents = false;  ///< whether blank lines part documents, none of which sees another
  std::optional<std::int64_t> batch_tokens;
  std::optional<std::int64_t> bptt;  ///< steps of truncated backpropagation through time; unset: blocks

  // Model
  std::string model = "gpt2";
  std::string model_kwargs = "{}";  ///< fields of config.json as a JSON object
  std::optional<double> drop;

  std::string kind() const override { return "lm"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<LanguageOptions>(*this); }
  void describe(OptionList& list) override;
  void validate() const override;
  std::unique_ptr<Task> make(const std::filesystem::path& checkpoint) const override;
};

}  // namespace vitrail::train
