/// \file
/// Lines of text translated by an encoder–decoder.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/generate/generate.h"
#include "vitrail/generate/generation_config.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::generate {

/// A translation of a line.
struct TranslatedLine {
  std::string text;
  std::vector<std::int64_t> ids;  ///< with the token that ended it, if one did
  double score = 0;               ///< Sequence::score
  /// If it was asked for, for each of its tokens the token of the source that it looks at most, by the mean over the
  /// heads of the last block's attention to the source: pairs (source, translation), from 0.
  std::vector<std::pair<std::int64_t, std::int64_t>> alignment;
};

/// The translations of a line, the best first: num_return_sequences of them; of an empty line there is one empty one.
struct LineTranslations {
  std::vector<std::string> tokens;  ///< of the source, as the model reads them
  std::vector<TranslatedLine> best;
};

/// Options of translate() besides the config.
struct TranslateOptions {
  std::int64_t batch_tokens = 384;  ///< the most tokens of the sources of a batch, padding included
  std::int64_t batch_lines = 0;     ///< its most lines; 0: no further limit
  /// A translation has at most this many times the tokens of its line, and ten more; 0: no limit but the config's.
  double most_growth = 0;
  bool alignment = false;
  GenerateOptions generate = {};  ///< without `stop`, `slides` and `numbers`: those are the lines'
  /// Called after each batch with the number of lines that have been translated so far, by one thread at a time.
  std::function<void(std::int64_t lines)> advance = {};
};

/// The token with which translations begin: decoder_start_token_id, or bos_token_id. Throws Error if the config has
/// neither.
std::int64_t start_token(const GenerationConfig& config);

/// Translates lines: those of similar length together, the longest first, and returns them in their own order. What
/// comes of a line does not depend on the others. Batches are translated side by side, one a thread, if there are as
/// many as threads (generate.interrupted is then called by all of them), else one after another by all threads. If the
/// run is interrupted, the result has no translations of the lines that were left. Throws Error, naming the line by its
/// number from `first_line` on, if it is not UTF-8 or longer than the model's positions.
std::vector<LineTranslations> translate(const models::Translator& model, const text::Tokenizer& tokenizer,
                                        const GenerationConfig& config, std::span<const std::string> lines,
                                        const TranslateOptions& options = {}, std::int64_t first_line = 1);

}  // namespace vitrail::generate
