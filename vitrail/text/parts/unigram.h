/// \file
/// The unigram language model (Kudo 2018).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/text/parts/model.h"

namespace vitrail::text {

/// A Unigram model as Hugging Face's tokenizers describe it (models/unigram).
struct UnigramConfig {
  std::vector<std::pair<std::string, double>>
      vocab;  ///< tokens with their logarithmic probabilities; ids are positions
  std::optional<std::size_t> unk_id;
  bool byte_fallback = false;  ///< an unknown part becomes its bytes, as tokens <0x00> to <0xFF>
};

/// Cuts a piece so that the sum of the scores is greatest; a character without a token has the lowest score of all,
/// less 10, and neighbours of these are one token. Throws Error if `unk_id` is not in the vocabulary or a score is not
/// finite.
std::unique_ptr<const Model> make_unigram(UnigramConfig config);

}  // namespace vitrail::text
