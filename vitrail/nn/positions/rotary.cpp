#include "vitrail/nn/positions/rotary.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The frequencies temperature^(-i / count) for i < count.
std::vector<float> frequencies(std::int64_t count, double temperature) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(static_cast<float>(std::pow(temperature, -static_cast<double>(i) / static_cast<double>(count))));
  }
  return result;
}

void check_divisible(std::int64_t head_dim, std::int64_t by) {
  check(head_dim > 0 && head_dim % by == 0, "rotary positions need heads whose width is divisible by {}, not {}", by,
        head_dim);
}

// Initializes the frequencies [2, depth, H, head_dim / 2] as timm's init_random_2d_freqs.
void fill_random_directions(const Tensor& freqs, double temperature, const Philox& draws) {
  const std::int64_t groups = freqs.size(1) * freqs.size(2);
  const std::int64_t half = freqs.size(3);
  const std::vector<float> lengths = frequencies(half / 2, temperature);
  float* x = freqs.data<float>();
  float* y = x + groups * half;
  for (std::int64_t group = 0; group < groups; ++group) {
    const double turn = 2 * std::numbers::pi * draws.uniform(static_cast<std::uint64_t>(group));
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = i < half / 2 ? turn : turn + std::numbers::pi / 2;
      const double length = lengths[static_cast<std::size_t>(i % (half / 2))];
      *x++ = static_cast<float>(length * std::cos(angle));
      *y++ = static_cast<float>(length * std::sin(angle));
    }
  }
}

}  // namespace

Tensor sequence_angles(std::int64_t length, std::int64_t head_dim, double temperature) {
  check_divisible(head_dim, 2);
  const std::vector<float> omega = frequencies(head_dim / 2, temperature);
  const Tensor angles = Tensor::empty({length, head_dim / 2});
  float* out = angles.data<float>();
  for (std::int64_t n = 0; n < length; ++n) {
    for (const float frequency : omega) {
      *out++ = static_cast<float>(n) * frequency;
    }
  }
  return angles;
}

Tensor axial_angles(const Size2& grid, std::int64_t head_dim, const AxialAngles& options) {
  check_divisible(head_dim, 4);
  const std::vector<float> omega = frequencies(head_dim / 4, options.temperature);
  const auto place = [&](std::int64_t index, std::size_t axis) {
    const float at = static_cast<float>(index) + static_cast<float>(options.offset);
    if (options.centered) {
      return 2 * std::numbers::pi_v<float> * (2 * (at + 0.5F) / static_cast<float>(grid[axis]) - 1);
    }
    return options.reference ? at / static_cast<float>(grid[axis]) * static_cast<float>((*options.reference)[axis])
                             : at;
  };
  const Tensor angles = Tensor::empty({grid[0] * grid[1], head_dim / 2});
  float* out = angles.data<float>();
  for (std::int64_t row = 0; row < grid[0]; ++row) {
    for (std::int64_t column = 0; column < grid[1]; ++column) {
      const float y = place(row, 0);
      const float x = place(column, 1);
      for (const float position : {options.columns_first ? x : y, options.columns_first ? y : x}) {
        for (const float frequency : omega) {
          *out++ = position * frequency;
        }
      }
    }
  }
  return angles;
}

MixedAngles::MixedAngles(const Scope& scope, std::int64_t depth, std::int64_t num_heads, std::int64_t head_dim,
                         double temperature, bool columns_first_axis)
    : columns_first(columns_first_axis) {
  check_divisible(head_dim, 4);
  freqs = scope.parameter("freqs", {2, depth, num_heads, head_dim / 2}, Init::zeros());
  if (scope.options().fill == Fill::initialize) {
    constexpr std::uint64_t stream = 0x526f5045;  // a stream of its own: "RoPE"
    fill_random_directions(freqs.detach(), temperature, Philox(scope.options().seed, stream));
  }
}

Tensor MixedAngles::operator()(const Size2& grid) const {
  const std::int64_t area = grid[0] * grid[1];
  const Tensor places = Tensor::empty({2, 1, 1, area, 1});
  for (std::int64_t n = 0; n < area; ++n) {
    const std::int64_t row = n / grid[1];
    const std::int64_t column = n % grid[1];
    places.data<float>()[n] = static_cast<float>(columns_first ? column : row);
    places.data<float>()[area + n] = static_cast<float>(columns_first ? row : column);
  }
  return ops::sum(places * ops::unsqueeze(freqs, 3), {0});
}

RotaryPositions::RotaryPositions(const Scope& scope, const Config& config) : config_(config) {
  check_divisible(config.head_dim, config.kind == Kind::sequence ? 2 : 4);
  if (config.kind == Kind::mixed) {
    mixed_.emplace(scope, config.depth, config.num_heads, config.head_dim, config.axial.temperature,
                   config.axial.columns_first);
  }
}

std::vector<ops::Rotation> RotaryPositions::operator()(const Size2& grid) const {
  const auto rotation = [&](const Tensor& angles) { return ops::rotation(angles, config_.pairs, config_.prefix); };
  if (!mixed_) {
    return {rotation(config_.kind == Kind::sequence
                         ? sequence_angles(grid[0] * grid[1], config_.head_dim, config_.axial.temperature)
                         : axial_angles(grid, config_.head_dim, config_.axial))};
  }
  const Tensor angles = (*mixed_)(grid);
  std::vector<ops::Rotation> result;
  for (std::int64_t block = 0; block < config_.depth; ++block) {
    result.push_back(rotation(ops::select(angles, 0, block)));
  }
  return result;
}

}  // namespace vitrail::nn
