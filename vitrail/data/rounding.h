// How the references round: sizes and weights must come out as theirs do. Not for use outside vitrail/data.
#pragma once

#include <cmath>
#include <cstdint>

namespace vitrail::data {

// Python's round(): halves to the even neighbour.
inline std::int64_t round_half_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

// Pillow's, in C: a half added and the rest cut off. (Below -0.5 that is not the nearest number, for Pillow neither.)
inline std::int64_t round_as_pillow(double x) { return static_cast<std::int64_t>(x + 0.5); }  // NOLINT

}  // namespace vitrail::data
