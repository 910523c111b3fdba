/// \file
/// What `vitrail generate` is asked for, and the configuration of the search that comes of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/cli/use/complete_pictures.h"
#include "vitrail/generate/generation_config.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::cli {

struct GenerateFlags {
  std::string model;
  std::optional<std::string> prompt;
  std::string prompts;
  bool skip_broken = false;
  ComputeFlags compute;
  std::optional<std::int64_t> max_new_tokens, min_new_tokens, top_k, num_beams, num_return_sequences,
      no_repeat_ngram_size;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, length_penalty;
  bool do_sample = false;
  std::string early_stopping;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> seed;
  PictureFlags pictures;
  std::optional<DType> cache_dtype;
  std::int64_t prompt_lookup_num_tokens = 0;
  std::optional<std::int64_t> max_matching_ngram_size;
  std::int64_t batch_size = 8;
  bool slide = false;
  bool stream = false;
  bool json = false;
};

/// Add the flags that say how tokens are drawn, and how they are looked for.
void add_sampling_flags(CLI::App& command, GenerateFlags& flags);
void add_search_flags(CLI::App& command, GenerateFlags& flags);

/// The config of the model's folder; what it says besides the defaults, and no flag replaces, goes to stderr.
generate::GenerationConfig own_config(const std::filesystem::path& folder, const GenerateFlags& flags);
/// The model's own config, with what the flags change, for a prompt of so many tokens.
generate::GenerationConfig config_of(const GenerateFlags& flags, generate::GenerationConfig own, std::int64_t prompt,
                                     std::int64_t positions);
/// Says on stderr which flags change nothing, as transformers does: those of sampling, beams or prompt lookup without
/// any.
void note_idle_flags(const GenerateFlags& flags, const generate::GenerationConfig& config);

}  // namespace vitrail::cli
