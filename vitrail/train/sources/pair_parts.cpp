#include "vitrail/train/sources/pair_parts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "vitrail/data/sources/parts.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {

text::ParallelText read_pairs_of(const PairPart& part, const std::string& source, const std::string& target,
                                 std::vector<std::string>& notes, std::int64_t* skipped) {
  text::ParallelText all = text::read_parallel_text(source, target, skipped);
  if (all.split.empty()) {
    check(!part.asked || part.name.empty(), "{}: there is no part '{}': no column 'split' says which pairs it has",
          text::shown_pairs(source, target), part.name);
    return all;
  }
  const std::set<std::string> names(all.split.begin(), all.split.end());
  const data::Parts parts = data::parts_named({names.begin(), names.end()});
  if (part.name.empty()) {
    data::check_whole(parts, source);
    return all;
  }
  std::vector<std::string> own;
  const data::Part* const wanted = data::choose_part(parts, part.name, source, own);
  if (part.learns && wanted != nullptr && parts.size() > 1) {
    data::Parts others = parts;
    std::erase_if(others, [&](const data::Part& one) { return one.name == wanted->name; });
    own.push_back(fmt::format("{}: its part '{}' is learnt, and not {}", source, wanted->name, data::names_in(others)));
  }
  std::ranges::copy_if(own, std::back_inserter(notes),
                       [&](const std::string& note) { return std::ranges::find(notes, note) == notes.end(); });
  text::ParallelText kept;
  kept.left_out = all.left_out;
  for (std::size_t i = 0; i < all.source.size(); ++i) {
    if (wanted == nullptr || all.split[i] == wanted->name) {
      kept.source.push_back(std::move(all.source[i]));
      kept.target.push_back(std::move(all.target[i]));
    }
  }
  return kept;
}

std::string skipped_pairs_summary(std::int64_t pairs) {
  return fmt::format("{} with a line that is not UTF-8 {} left out", io::counted(pairs, "pairs"),
                     pairs == 1 ? "is" : "are");
}

}  // namespace vitrail::train
