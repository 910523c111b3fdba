/// \file
/// Colour maps.
#pragma once

#include <array>
#include <cstdint>

namespace vitrail::explain {

using Color = std::array<std::uint8_t, 3>;  ///< red, green, blue

// Perceptually uniform colour maps of [0, 1], interpolated from samples of matplotlib's tables (Smith & van der Walt
// 2015, CC0). Values outside are clamped, NaN counts as 0.

Color viridis(float value);
Color inferno(float value);

}  // namespace vitrail::explain
