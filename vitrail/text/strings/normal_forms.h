/// \file
/// Unicode's normal forms, with where each code point comes from.
#pragma once

#include <string_view>
#include <vector>

#include "vitrail/text/strings/normalized_string.h"

namespace vitrail::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The code points of `text` in a normal form, as changes for NormalizedString::transform(). Like the package
/// `unicode-normalization-alignments`, which Hugging Face's tokenizers use, it knows the characters of Unicode 9; later
/// ones stay as they are.
std::vector<Change> normalize(std::string_view text, NormalForm form);

}  // namespace vitrail::text
