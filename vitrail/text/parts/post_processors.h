/// \file
/// What is put around the tokens of a text: the post-processors of Hugging Face's tokenizers, by their names there.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "vitrail/text/parts/encoding.h"

namespace vitrail::text {

/// Leaves white space out of the offsets of byte-level tokens.
struct TrimOffsets {
  bool trim_offsets = true;
  bool add_prefix_space = true;  ///< the first token's one space was put there, and is no white space of the text
};

struct SpecialToken {
  std::string token;
  std::int64_t id = 0;
};
struct BertProcessing {
  SpecialToken sep;
  SpecialToken cls;
};
struct RobertaProcessing {
  SpecialToken sep;
  SpecialToken cls;
  TrimOffsets trim;
};
struct TemplateProcessing {
  /// A piece of a template: a text (0 or 1), or special tokens.
  struct Piece {
    std::size_t text = 0;
    std::vector<SpecialToken> special;
    std::int64_t type_id = 0;
  };
  std::vector<Piece> single;
  std::vector<Piece> pair;
};

using PostProcessor = std::variant<TrimOffsets, BertProcessing, RobertaProcessing, TemplateProcessing>;

/// The number of special tokens that the post-processors add to a text or a pair.
std::int64_t count_added(std::span<const PostProcessor> processors, bool pair);

/// Applies one after the other to one or two encodings, and joins what they give.
Encoding post_process(std::span<const PostProcessor> processors, std::vector<Encoding> encodings,
                      bool add_special_tokens);

}  // namespace vitrail::text
