/// \file
/// How tokens become a text again: the decoders of Hugging Face's tokenizers, by their names there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vitrail/text/parts/normalizers.h"
#include "vitrail/text/parts/pre_tokenizers.h"

namespace vitrail::text {

struct BpeDecoder {
  std::string suffix = "</w>";  ///< becomes a space, or nothing at the end
};
struct ByteFallback {};      ///< tokens <0x00> to <0xFF> become bytes; U+FFFD for each if these are not UTF-8
struct ByteLevelDecoder {};  ///< characters become the bytes for which they stand
struct CtcDecoder {
  std::string pad_token = "<pad>";
  std::string word_delimiter_token = "|";
  bool cleanup = true;
};
struct Fuse {};  ///< all tokens become one
struct StripDecoder {
  char32_t content = U' ';
  std::size_t start = 0;  ///< the most that is left out at the beginning of each token …
  std::size_t stop = 0;   ///< … and at its end
};
struct WordPieceDecoder {
  std::string prefix = "##";  ///< of tokens that continue a word; before others a space is put
  bool cleanup = true;        ///< no space before punctuation and what was split off by an apostrophe
};

/// Replace is the normalizer, Metaspace the pre-tokenizer.
using Decoder = std::variant<BpeDecoder, ByteFallback, ByteLevelDecoder, CtcDecoder, Fuse, Metaspace, Replace,
                             StripDecoder, WordPieceDecoder>;

/// Applies one after the other, and joins the tokens.
std::string decode(std::span<const Decoder> decoders, std::vector<std::string> tokens);

/// Whether a token stands for a byte, "<0x00>" to "<0xFF>", where a tokenizer has ByteFallback.
bool is_byte_token(std::string_view token);

}  // namespace vitrail::text
