/// \file
/// What a text becomes: the rows that a model takes, and where in the text each token lies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vitrail::text {

/// One encoded text (or pair of texts). All lists have the same length, one entry a token; names and values are those
/// of `Encoding` in Hugging Face's tokenizers.
struct Encoding {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> type_ids;  ///< 0 for the first text and 1 for the second, unless the tokenizer says else
  std::vector<std::string> tokens;     ///< the pieces as in the vocabulary; an unknown one may be as in the text
  /// [begin, end) of each token in code points of the text that it comes from; (0, 0) for tokens of no text.
  std::vector<std::pair<std::int64_t, std::int64_t>> offsets;
  std::vector<bool> special;         ///< special_tokens_mask: tokens that the tokenizer put there itself
  std::vector<bool> attention_mask;  ///< false where padding is

  std::size_t size() const { return ids.size(); }
};

/// Appends the tokens of `from`, a text that begins so many code points behind the one of `to`.
void append(Encoding& to, const Encoding& from, std::int64_t shift = 0);

}  // namespace vitrail::text
