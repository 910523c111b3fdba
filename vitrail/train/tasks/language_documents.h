/// \file
/// The documents that a language model learns, each by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/text/tokenizer.h"

namespace vitrail::train {

/// The documents of a text, which blank lines part, each with the blank line that ends it where the model has no token
/// `end` for that.
std::vector<std::string> documents_in(const std::string& corpus, const std::optional<std::int64_t>& end);
/// Documents as tokens, each with the model's `end` before and behind it.
std::vector<std::vector<std::int64_t>> encode_documents(const text::Tokenizer& tokenizer,
                                                        const std::vector<std::string>& texts,
                                                        const std::optional<std::int64_t>& end);
/// The tokens of documents, one behind the other.
std::vector<std::int64_t> joined_documents(const std::vector<std::vector<std::int64_t>>& documents);

}  // namespace vitrail::train
