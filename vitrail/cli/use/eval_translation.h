/// \file
/// What `vitrail eval` does with a translator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/cli/flags.h"

namespace vitrail::cli {

/// The flags that say what a translator is evaluated on.
struct TranslationFlags {
  std::string src;
  std::string tgt;
  std::optional<std::int64_t> num_beams;
  std::optional<std::int64_t> batch_tokens;

  bool given() const { return !src.empty() || !tgt.empty(); }
};
void add_translation_flags(CLI::App& command,
                           TranslationFlags& flags);  ///< adds --src --tgt --num-beams --batch-tokens

/// Prints the loss of a translator on texts and their translations, and BLEU of its own translations; of a table with
/// parts, on the part `split`. With `skip_broken`, pairs with a line that is not UTF-8 are left out and counted.
void evaluate_translator(const std::string& model, const TranslationFlags& flags, const std::string& split,
                         bool skip_broken, const ComputeFlags& compute, bool json);

}  // namespace vitrail::cli
