/// \file
/// Sums of a few numbers that several ranks have.
#pragma once

#include <span>
#include <string>

#include "vitrail/dist/communicator.h"

namespace vitrail::dist {

/// Adds up numbers, in place, over the ranks `members`, in ascending order, of which this rank is one. Each sends its
/// own to all others and adds them up in the order of the ranks, so that all have the same bits. Messages have the tag
/// `tag`; `where` is for the Error of wait().
void add_up(Communicator& ranks, std::span<const int> members, std::span<double> numbers, int tag,
            const std::string& where);

}  // namespace vitrail::dist
