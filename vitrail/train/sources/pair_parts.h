/// \file
/// Parts of tables of texts and their translations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/text/parallel_text.h"

namespace vitrail::train {

/// Which pairs are read.
struct PairPart {
  std::string name;     ///< of the part: "train"; empty: all, of a table with one part at most
  bool asked = false;   ///< whether the user has named it: pairs without parts are then an error, and else all taken
  bool learns = false;  ///< whether the notes say which others are not learnt
};
/// Reads pairs as text::read_parallel_text() does, and keeps those of a part, by any of its names, if a column or field
/// `split` says which they are of. `notes` also say what is taken in place of a part that is not there. Throws Error if
/// there is no such part, and, where none is named, if there are several.
text::ParallelText read_pairs_of(const PairPart& part, const std::string& source, const std::string& target,
                                 std::vector<std::string>& notes, std::int64_t* skipped = nullptr);
/// "2 pairs with a line that is not UTF-8 are left out".
std::string skipped_pairs_summary(std::int64_t pairs);

}  // namespace vitrail::train
