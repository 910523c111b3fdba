#include "vitrail/explain/drawing/colormap.h"

#include <algorithm>
#include <cmath>

namespace vitrail::explain {
namespace {

constexpr int samples = 17;
using Samples = std::array<Color, samples>;

constexpr Samples viridis_table = {{{68, 1, 84},
                                    {72, 24, 106},
                                    {71, 45, 123},
                                    {66, 64, 134},
                                    {59, 82, 139},
                                    {51, 99, 141},
                                    {44, 114, 142},
                                    {38, 130, 142},
                                    {33, 145, 140},
                                    {31, 160, 136},
                                    {40, 174, 128},
                                    {63, 188, 115},
                                    {94, 201, 98},
                                    {132, 212, 75},
                                    {173, 220, 48},
                                    {216, 226, 25},
                                    {253, 231, 37}}};
constexpr Samples inferno_table = {{{0, 0, 4},
                                    {11, 7, 36},
                                    {33, 12, 74},
                                    {61, 9, 101},
                                    {87, 16, 110},
                                    {113, 25, 110},
                                    {138, 34, 106},
                                    {163, 44, 97},
                                    {188, 55, 84},
                                    {210, 70, 68},
                                    {228, 90, 49},
                                    {241, 115, 29},
                                    {249, 142, 9},
                                    {252, 172, 17},
                                    {249, 203, 53},
                                    {242, 234, 105},
                                    {252, 255, 164}}};

Color interpolate(const Samples& table, float value) {
  const float place = std::clamp(std::isnan(value) ? 0.0F : value, 0.0F, 1.0F) * (samples - 1);
  const int left = std::min(static_cast<int>(place), samples - 2);
  const float t = place - static_cast<float>(left);
  Color result{};
  for (std::size_t c = 0; c < 3; ++c) {
    const auto a = static_cast<float>(table[static_cast<std::size_t>(left)][c]);
    const auto b = static_cast<float>(table[static_cast<std::size_t>(left) + 1][c]);
    result[c] = static_cast<std::uint8_t>(std::lround(a + t * (b - a)));
  }
  return result;
}

}  // namespace

Color viridis(float value) { return interpolate(viridis_table, value); }
Color inferno(float value) { return interpolate(inferno_table, value); }

}  // namespace vitrail::explain
