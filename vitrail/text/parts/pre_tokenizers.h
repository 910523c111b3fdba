/// \file
/// How a text is split into the pieces that the model sees: the pre-tokenizers of Hugging Face's tokenizers, by their
/// names there.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vitrail/text/strings/normalized_string.h"
#include "vitrail/text/strings/regex.h"

namespace vitrail::text {

struct BertPreTokenizer {};  ///< at white space, and around punctuation
struct ByteLevel {
  bool add_prefix_space = true;
  bool use_regex = true;  ///< split by GPT-2's expression
};
struct CharDelimiterSplit {
  char32_t delimiter;
};
struct Digits {
  bool individual_digits = false;
};
struct FixedLength {
  std::size_t length = 5;  ///< in code points
};
struct Metaspace {
  enum class Prepend { always, first, never };
  char32_t replacement = 0x2581;
  Prepend prepend_scheme = Prepend::always;  ///< where a replacement is put before a piece that does not begin with one
  bool split = true;
};
struct Punctuation {
  SplitBehavior behavior = SplitBehavior::isolated;
};
struct Split {
  Regex pattern;
  SplitBehavior behavior;
  bool invert = false;
};
struct UnicodeScripts {};   ///< where the script changes
struct Whitespace {};       ///< words, and runs of what is neither word nor white space
struct WhitespaceSplit {};  ///< at white space

using PreTokenizer = std::variant<BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace,
                                  Punctuation, Split, UnicodeScripts, Whitespace, WhitespaceSplit>;

/// The parts into which a pre-tokenizer splits `text`, none of them empty.
std::vector<NormalizedString> pre_tokenize(const PreTokenizer& pre_tokenizer, NormalizedString text);

}  // namespace vitrail::text
