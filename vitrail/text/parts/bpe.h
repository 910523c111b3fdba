/// \file
/// Byte-pair encoding (Sennrich et al. 2016).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/text/parts/model.h"
#include "vitrail/text/parts/vocabulary.h"

namespace vitrail::text {

/// A BPE model as Hugging Face's tokenizers describe it (models/bpe): names and meaning of the fields are theirs.
struct BpeConfig {
  Vocabulary vocab;
  std::vector<std::pair<std::string, std::string>> merges;  ///< the most important first
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;  ///< of every character of a piece but the first
  std::string end_of_word_suffix;         ///< of the last character of a piece
  bool fuse_unk = false;                  ///< unknown characters beside each other make one token
  bool byte_fallback = false;             ///< an unknown character becomes its bytes, as tokens <0x00> to <0xFF>
  bool ignore_merges = false;             ///< a piece that is a token is that token
};

/// Starts with the characters of a piece and joins neighbours, the pair of the best rank first and among equal ones the
/// leftmost. Throws Error if a merge has tokens that the vocabulary has not.
std::unique_ptr<const Model> make_bpe(BpeConfig config);

}  // namespace vitrail::text
