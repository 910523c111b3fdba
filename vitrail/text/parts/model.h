/// \file
/// The part of a tokenizer that has the vocabulary: it cuts the pieces of a text into tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// A token of a piece of text.
struct Token {
  std::uint32_t id;
  std::uint32_t begin;   ///< the first byte of the piece that it stands for …
  std::uint32_t end;     ///< … and the one after the last
  bool as_text = false;  ///< its name is what the text has there, and not what the vocabulary has
};

/// What BPE, WordPiece, Unigram and WordLevel have in common. Methods may be called by several threads.
class Model {
 public:
  virtual ~Model() = default;
  /// Appends the tokens of `piece`, which is UTF-8 and not empty. Throws Error if there are none for a part of it.
  virtual void tokenize(std::string_view piece, std::vector<Token>& tokens) const = 0;
  virtual std::optional<std::uint32_t> find(std::string_view token) const = 0;
  /// The token of `id`, or nullptr.
  virtual const std::string* token(std::int64_t id) const = 0;
  virtual std::size_t vocab_size() const = 0;
  /// One more than the largest id.
  virtual std::int64_t id_end() const = 0;
};

}  // namespace vitrail::text
