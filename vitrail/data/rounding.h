/// \file
/// Rounding as in the reference implementations, so that sizes and weights equal theirs. It is not for use outside of
/// vitrail/data.
#pragma once

#include <cmath>
#include <cstdint>

namespace vitrail::data {

/// Python's round(): halves go to the even neighbour.
inline std::int64_t round_half_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

/// Pillow's rounding in C: adds a half and truncates. Below -0.5 that is not the nearest number, in Pillow as here.
inline std::int64_t round_as_pillow(double x) { return static_cast<std::int64_t>(x + 0.5); }  // NOLINT

}  // namespace vitrail::data
