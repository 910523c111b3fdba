/// \file
/// Texts continued by a language model: greedy search, sampling and beam search, as transformers' generate().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "vitrail/generate/generation_config.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::generate {

/// A continuation of a prompt.
struct Sequence {
  std::vector<std::int64_t> ids;  ///< the new tokens, with the one that ended it, if one did
  /// Of a beam search, the sum of the tokens' log-probabilities over the LengthPenalty.
  double score = 0;
};

/// What is told of a run besides the sequences.
struct Statistics {
  double prompt_seconds = 0;        ///< for the prompt
  double new_seconds = 0;           ///< for all tokens after the first of each prompt
  std::int64_t new_tokens = 0;      ///< of one sequence, the longest
  std::int64_t all_new_tokens = 0;  ///< of all sequences together
  std::size_t cache_bytes = 0;      ///< the most that the model has kept of the texts
  std::int64_t texts = 0;           ///< sequences

  /// Of all sequences together, without the first token of each, which comes of the prompt; 0 if there are no others.
  double tokens_per_second() const {
    return all_new_tokens > texts ? static_cast<double>(all_new_tokens - texts) / new_seconds : 0;
  }
};

/// By what the sum of log-probabilities of a sequence of n new tokens is divided, with α = length_penalty: n^α as in
/// transformers, or ((5 + n) / 6)^α (Wu et al. 2016, eq. 14).
enum class LengthPenalty { hf, wu };

/// Options of generate() besides the config.
struct GenerateOptions {
  DType dtype = DType::f32;                         ///< of products
  std::optional<DType> cache_dtype = std::nullopt;  ///< of kept keys and values: f32, bf16 or i8; unset: dtype
  /// Of sampling: sequence i of prompt p draws from (seed, p n + i) alone, where n is num_return_sequences. Equal
  /// prompts have sequences of their own.
  std::uint64_t seed = 0;
  std::vector<std::int64_t> numbers = {};  ///< the number p of each prompt; empty: 0, 1, …
  /// Lets a text become longer than the model's positions, outside of a beam search: when they are full, the model
  /// reads the second half of them anew, as a text of its own, and goes on from there. Of a prompt that is longer, it
  /// reads what would be in view if it had been generated.
  bool slides = false;
  LengthPenalty penalty = LengthPenalty::hf;  ///< of a beam search
  /// The most new tokens for each prompt, where that is less than the config's; empty: none is limited further.
  std::vector<std::int64_t> limits = {};
  /// transformers' prompt lookup (Saxena 2023): what follows an earlier place of the text's last tokens, up to so many
  /// tokens, is read at once with the last token, and kept as far as it is what would have been generated. It changes
  /// the pace alone. For one text at a time, without beams; 0: none.
  std::int64_t prompt_lookup_num_tokens = 0;
  std::int64_t max_matching_ngram_size = 2;  ///< the most last tokens that are looked for
  /// Called with all new tokens of a sequence after each one; true ends the sequence. In a beam search it is called
  /// for each of the best continuations, with the number of the prompt's first sequence.
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
/// The continuations of each of several prompts of one length, which are read together. Those of prompt p are what
/// generate() gives for it alone with the number p. The model may be a Translation, whose sources the prompts belong
/// to; it cannot slide.
std::vector<std::vector<Sequence>> generate_batch(const models::LanguageBody& model,
                                                  const std::vector<std::vector<std::int64_t>>& prompts,
                                                  const GenerationConfig& config, const GenerateOptions& options = {},
                                                  Statistics* statistics = nullptr);

/// The continuations of several prompts of any lengths, as by generate_batch(): the texts of `batch_size` prompts are
/// continued together, and where one is finished, the next prompt takes its place (continuous batching: Yu et al.
/// 2022). The model must be able to join texts (TextState::join()); it cannot slide.
std::vector<std::vector<Sequence>> generate_all(const models::LanguageBody& model,
                                                const std::vector<std::vector<std::int64_t>>& prompts,
                                                const GenerationConfig& config, std::int64_t batch_size,
                                                const GenerateOptions& options = {}, Statistics* statistics = nullptr);

}  // namespace vitrail::generate
