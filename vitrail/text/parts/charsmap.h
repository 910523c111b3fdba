/// \file
/// The replacements that sentencepiece compiles into its models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/text/strings/normalized_string.h"

namespace vitrail::text {

/// A `precompiled_charsmap`: strings and what they become. Its bytes are a length, a trie in the double-array form of
/// Darts with the strings, and their replacements, each ended by a zero byte.
class Charsmap {
 public:
  /// Throws Error if `bytes` is not such a map.
  explicit Charsmap(std::string_view bytes);

  /// What the shortest string of the map with which `text` begins becomes, if there is one: so does Hugging Face's
  /// `spm_precompiled`, where sentencepiece takes the longest.
  std::optional<std::string_view> find(std::string_view text) const;

  /// Replaces each grapheme cluster of less than six bytes as a whole if the map has it, else its code points one by
  /// one.
  void normalize(NormalizedString& text) const;

 private:
  void check_trie() const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace vitrail::text
