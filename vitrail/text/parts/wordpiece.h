/// \file
/// The model of BERT.
#pragma once

#include <memory>
#include <string>

#include "vitrail/text/parts/model.h"
#include "vitrail/text/parts/vocabulary.h"

namespace vitrail::text {

/// A WordPiece model as Hugging Face's tokenizers describe it (models/wordpiece).
struct WordPieceConfig {
  Vocabulary vocab;
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  std::size_t max_input_chars_per_word = 100;  ///< a longer word is unknown
};

/// Takes the longest token with which a word begins, then the longest with which the rest does, and so on; a word for
/// which that does not work out is one unknown token.
std::unique_ptr<const Model> make_wordpiece(WordPieceConfig config);

}  // namespace vitrail::text
