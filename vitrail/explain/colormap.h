// Numbers as colours.
#pragma once

#include <array>
#include <cstdint>

namespace vitrail::explain {

using Color = std::array<std::uint8_t, 3>;  // red, green, blue

// Perceptually uniform maps of [0, 1] (values outside are clamped), interpolated from samples of matplotlib's tables
// (Smith & van der Walt 2015, CC0).
Color viridis(float value);
Color inferno(float value);

}  // namespace vitrail::explain
