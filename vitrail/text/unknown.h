/// \file
/// What a tokenizer's vocabulary has nothing for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/tokenizer.h"

namespace vitrail::text {

/// The token that stands for what the vocabulary has nothing for, `[UNK]` or `<unk>`, if the tokenizer has one.
std::optional<std::int64_t> unknown_token(const Tokenizer& tokenizer);

/// The words of a text of which the tokenizer has nothing but its unknown_token(), as they stand there.
std::vector<std::string> unknown_words(const Tokenizer& tokenizer, std::string_view text);

/// The words of a text, of three letters or more, of which a tokenizer of pieces has nothing but single characters or
/// bytes, so that its model has hardly read them; none for tokenizers that have no larger pieces.
std::vector<std::string> spelt_words(const Tokenizer& tokenizer, std::string_view text);

/// Counts tokens, and among them unknown_token().
class UnknownTokens {
 public:
  explicit UnknownTokens(const Tokenizer& tokenizer);

  void add(std::span<const std::int64_t> ids);
  /// "a.txt: 2 of 40 tokens are [UNK]: the tokenizer does not know what stands there"; "" if none is.
  std::string note(std::string_view source) const;

 private:
  std::optional<std::int64_t> token_;
  std::string name_;
  std::int64_t count_ = 0;
  std::int64_t all_ = 0;
};

}  // namespace vitrail::text
