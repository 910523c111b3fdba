/// \file
/// What is done to a text before it is split: the normalizers of Hugging Face's tokenizers, by their names there.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/text/parts/charsmap.h"
#include "vitrail/text/strings/normal_forms.h"
#include "vitrail/text/strings/normalized_string.h"
#include "vitrail/text/strings/regex.h"

namespace vitrail::text {

struct BertNormalizer {
  bool clean_text = true;            ///< leave out control characters, and make all white space ' '
  bool handle_chinese_chars = true;  ///< put spaces around ideographs
  bool strip_accents = true;         ///< decompose, and leave out nonspacing marks
  bool lowercase = true;
};
struct Strip {
  bool left = true;
  bool right = true;
};
struct StripAccents {};  ///< leaves out combining marks
struct Lowercase {};
struct Nmt {};  ///< leaves out control characters, and makes white space of all kinds ' '
struct Prepend {
  std::string prepend;
};
struct Replace {
  Regex pattern;
  std::string content;
};
struct BytesAsCharacters {};  ///< the normalizer ByteLevel
using Precompiled = std::shared_ptr<const Charsmap>;

using Normalizer = std::variant<BertNormalizer, Strip, StripAccents, Lowercase, Nmt, Prepend, Replace,
                                BytesAsCharacters, NormalForm, Precompiled>;

/// Applies one after the other.
void normalize(std::span<const Normalizer> normalizers, NormalizedString& text);

/// Replaces each byte by the character that stands for it (byte_alphabet.h).
void to_byte_characters(NormalizedString& text);

}  // namespace vitrail::text
