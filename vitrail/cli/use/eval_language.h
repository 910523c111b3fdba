/// \file
/// What `vitrail eval` does with a language model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"

namespace vitrail::cli {

/// The flags that say how a language model is evaluated.
struct LanguageFlags {
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> stride;
  bool by_position = false;
  std::optional<bool> documents;
  std::vector<std::string> beside;  ///< evaluations that are drawn in the same chart

  bool given() const { return block_size || stride || by_position || documents.has_value() || !beside.empty(); }
};
/// Adds --block-size --stride --by-position --documents --no-documents --beside.
void add_language_flags(CLI::App& command, LanguageFlags& flags);

/// Prints how well a language model predicts the text `data`, `batch_size` blocks at once (unset: as many as have about
/// 8192 tokens); with `output`, writes a folder with eval.json and, by
/// position, by_position.svg. With `skip_broken`, lines that are not UTF-8 are left out and counted.
void evaluate_language_model(const ModelFlags& model, const std::string& data, bool skip_broken,
                             const std::optional<std::int64_t>& batch_size, const LanguageFlags& flags,
                             const ComputeFlags& compute, const std::string& output, bool json);

}  // namespace vitrail::cli
