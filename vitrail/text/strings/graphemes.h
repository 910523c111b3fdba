/// \file
/// What a reader takes for one character.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// The ends of the extended grapheme clusters of `text` (Unicode Standard Annex #29, rules GB3 to GB13 of version 15.1,
/// whichever version ICU has).
std::vector<std::size_t> grapheme_ends(std::string_view text);

}  // namespace vitrail::text
