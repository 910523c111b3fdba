/// \file
/// Noise of rendered images. It is not for use outside of vitrail/data/scenes.
#pragma once

#include <cstdint>

namespace vitrail::data {

/// Noise of deviation `sigma` from a random word: the sum of its four bytes has the deviation 147.8 and the mean 510.
constexpr std::int64_t noise_of(std::uint32_t word, std::int64_t sigma) {
  constexpr std::int64_t deviation = 148;
  const std::int64_t sum = (word & 255U) + (word >> 8 & 255U) + (word >> 16 & 255U) + (word >> 24);
  constexpr std::int64_t shift = 1000;  // keeps the quotient positive, so that it is rounded the same way
  return ((sum - 510) * sigma + deviation / 2 + deviation * shift) / deviation - shift;
}

}  // namespace vitrail::data
