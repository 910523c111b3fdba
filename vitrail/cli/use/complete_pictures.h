/// \file
/// What `vitrail generate` does with a model whose words are colours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "vitrail/generate/generation_config.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::cli {

/// The flags that say what of which pictures is completed.
struct PictureFlags {
  std::optional<std::int64_t> rows;
  std::string output;

  bool given() const { return rows || !output.empty(); }
};

/// Completes pictures (a file or a folder of them; none: from nothing) below the rows that are given, and writes a PNG
/// of them: a line for each, with its colours, what is given, and num_return_sequences completions.
void complete_pictures(const models::LanguageBody& model, const std::filesystem::path& folder,
                       const std::optional<std::string>& pictures, const PictureFlags& flags,
                       generate::GenerationConfig config, std::uint64_t seed, DType dtype);

}  // namespace vitrail::cli
