/// \file
/// The next number of a row that may be among its best, as a search for the best of many looks for it.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

/// The first i of begin … end - 1 for which x[i] > bound, or x[i] < bound if not `greater`, or x[i] is NaN; else `end`.
/// On this thread.
std::int64_t first_beyond(const float* x, std::int64_t begin, std::int64_t end, float bound, bool greater);

}  // namespace vitrail::kernels
