/// \file
/// Encodings of a given length: cut, or filled up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "vitrail/text/parts/encoding.h"

namespace vitrail::text {

/// The end at which tokens are cut off or put.
enum class Side { left, right };

/// Cuts encodings that are too long. What is cut off is lost: a stride over it is not supported.
struct Truncation {
  /// What of a pair is cut.
  enum class Strategy { longest_first, only_first, only_second };
  std::int64_t max_length = 512;  ///< with the special tokens
  Strategy strategy = Strategy::longest_first;
  Side side = Side::right;
};

/// Fills up encodings that are too short.
struct Padding {
  std::optional<std::int64_t> length;  ///< none: that of the longest encoding of a batch
  std::int64_t multiple_of = 1;        ///< the length is rounded up to a multiple of this
  Side side = Side::right;
  std::int64_t id = 0;
  std::int64_t type_id = 0;
  std::string token = "[PAD]";
};

/// Cuts one encoding or a pair, to which `added` special tokens will be added, as `truncate_encodings` of Hugging
/// Face's tokenizers. Throws Error if nothing is left to cut.
void truncate(std::span<Encoding> encodings, const Truncation& truncation, std::int64_t added);

/// Fills up all encodings to the length of the padding, as `pad_encodings` of Hugging Face's tokenizers.
void pad(std::span<Encoding> encodings, const Padding& padding);

}  // namespace vitrail::text
