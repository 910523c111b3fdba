/// \file
/// Tokens that are found in a text before the model sees it, such as `<|endoftext|>`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/parts/model.h"
#include "vitrail/text/parts/normalizers.h"
#include "vitrail/text/strings/byte_trie.h"
#include "vitrail/text/strings/normalized_string.h"

namespace vitrail::text {

/// A token with the flags of Hugging Face's AddedToken.
struct AddedToken {
  std::string content;
  bool single_word = false;  ///< not where a letter stands beside it
  bool lstrip = false;       ///< it takes up white space to its left …
  bool rstrip = false;       ///< … and to its right
  bool normalized = false;   ///< found in the normalized text, by its own normalized form
  bool special = false;      ///< decoding leaves it out
  bool operator==(const AddedToken&) const = default;
};

/// The added tokens of a tokenizer, as `AddedVocabulary` of Hugging Face's tokenizers.
class AddedTokens {
 public:
  /// Gives each token the id that the model has for it, or the next free one. With `splits_special`, special ones are
  /// not found in texts. Throws Error if two of them are found as the same string.
  AddedTokens(std::span<const AddedToken> tokens, const Model& model, std::span<const Normalizer> normalizers,
              bool splits_special = false);

  /// A part of a text: one of the added tokens, or what is to be tokenized.
  struct Part {
    NormalizedString text;
    std::optional<std::uint32_t> id;
  };
  /// Finds the added tokens in `text` and normalizes the rest.
  std::vector<Part> split(std::string_view text, std::span<const Normalizer> normalizers) const;

  std::optional<std::uint32_t> find(std::string_view content) const;
  /// The token of `id` as decoders take it: in its normalized form if it has one. nullptr if `id` is not an added
  /// token.
  const std::string* token(std::int64_t id) const;
  /// Whether decoding leaves out a token that is written like this.
  bool is_special(std::string_view token) const { return special_.contains(token); }
  std::size_t size() const { return ids_.size(); }
  /// The number of tokens that the model does not have.
  std::size_t beyond(const Model& model) const;

 private:
  struct Entry {
    AddedToken token;
    std::string written;  // in its normalized form, if it is to be found so
  };
  void split(const NormalizedString& text, const ByteTrie& trie, std::vector<Part>& parts) const;

  std::map<std::string, std::uint32_t, std::less<>> ids_;
  std::map<std::int64_t, Entry> tokens_;
  std::set<std::string, std::less<>> special_;
  ByteTrie in_text_;
  ByteTrie in_normalized_;
  bool splits_special_;
};

}  // namespace vitrail::text
