/// \file
/// The model whose tokens are whole words.
#pragma once

#include <memory>
#include <string>

#include "vitrail/text/parts/model.h"
#include "vitrail/text/parts/vocabulary.h"

namespace vitrail::text {

/// A piece is a token or unknown, as in Hugging Face's tokenizers (models/wordlevel).
std::unique_ptr<const Model> make_wordlevel(Vocabulary vocab, std::string unk_token);

}  // namespace vitrail::text
