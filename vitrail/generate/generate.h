/// \file
/// Texts continued by a language model: greedy search, sampling and beam search, as transformers' generate().
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vitrail/generate/generation_config.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::generate {

/// A continuation of a prompt.
struct Sequence {
  std::vector<std::int64_t> ids;  ///< the new tokens, with the one that ended it, if one did
  /// Of a beam search, the sum of the tokens' log-probabilities over its length to the power of length_penalty.
  double score = 0;
};

/// What is told of a run besides the sequences.
struct Statistics {
  double prompt_seconds = 0;    ///< for the prompt
  double new_seconds = 0;       ///< for all tokens after the first
  std::int64_t new_tokens = 0;  ///< of one sequence, the longest
  std::size_t cache_bytes = 0;  ///< what the model keeps of the texts at the end
};

/// Options of generate() besides the config.
struct GenerateOptions {
  DType dtype = DType::f32;  ///< of products and of the cache
  std::uint64_t seed = 0;    ///< of sampling: sequence i draws from (seed, i) alone
  /// Lets a text become longer than the model's positions, outside of a beam search: when they are full, the model
  /// reads the second half of them anew, as a text of its own, and goes on from there.
  bool slides = false;
  /// Called with all new tokens of a sequence after each one (not in a beam search, whose sequences are known at its
  /// end); true ends the sequence.
  std::function<bool(std::int64_t sequence, std::span<const std::int64_t> ids)> stop = {};
  /// Called after each step; true ends the run with what there is.
  std::function<bool()> interrupted = {};
};

/// The num_return_sequences continuations of a prompt of at least one token, the best first in a beam search. Throws
/// Error if the config is not valid, or if prompt and new tokens are longer than the model's positions and it does not
/// slide.
std::vector<Sequence> generate(const models::LanguageBody& model, const std::vector<std::int64_t>& prompt,
                               const GenerationConfig& config, const GenerateOptions& options = {},
                               Statistics* statistics = nullptr);

}  // namespace vitrail::generate
