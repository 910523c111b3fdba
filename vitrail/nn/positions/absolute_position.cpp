#include "vitrail/nn/positions/absolute_position.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/attention/rotary.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The places of a grid's patches as fractions of the image, [rows · columns, 2].
Tensor fractions(const Size2& grid) {
  const Tensor result = Tensor::empty({grid[0] * grid[1], 2});
  float* out = result.data<float>();
  for (std::int64_t row = 0; row < grid[0]; ++row) {
    for (std::int64_t column = 0; column < grid[1]; ++column) {
      *out++ = static_cast<float>(row) / static_cast<float>(grid[0]);
      *out++ = static_cast<float>(column) / static_cast<float>(grid[1]);
    }
  }
  return result;
}

void check_even(std::int64_t dim) {
  check(dim % 2 == 0, "positions of sines and cosines need an even width, not {}", dim);
}

bool is_close(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.values();
  const std::vector<float> y = b.values();
  return std::ranges::equal(x, y, [](float u, float v) { return std::abs(u - v) < 1e-5F; });
}

}  // namespace

bool is_fixed(AbsoluteKind kind) {
  return kind == AbsoluteKind::sincos1d || kind == AbsoluteKind::sincos || kind == AbsoluteKind::sincos_gsd ||
         kind == AbsoluteKind::fourier;
}

Tensor sine_positions(std::int64_t length, std::int64_t dim) {
  check_even(dim);
  const Tensor result = Tensor::empty({length, dim});
  float* out = result.data<float>();
  for (std::int64_t n = 0; n < length; ++n) {
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const double angle =
          static_cast<double>(n) * std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(dim));
      *out++ = static_cast<float>(std::sin(angle));
      *out++ = static_cast<float>(std::cos(angle));
    }
  }
  return result;
}

Tensor fourier_positions(const Size2& grid, std::int64_t dim, double sigma) {
  check_even(dim);
  const Philox draws(0x466f7572696572, 0);  // the seed is "Fourier": one table for all models
  const Tensor places = fractions(grid);
  const Tensor result = Tensor::empty({grid[0] * grid[1], dim});
  const float* v = places.data<float>();
  float* out = result.data<float>();
  for (std::int64_t n = 0; n < result.size(0); ++n, v += 2, out += dim) {
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const auto b = [&](std::int64_t axis) { return draws.normal(static_cast<std::uint64_t>(2 * i + axis)); };
      const double angle = 2 * std::numbers::pi * sigma * static_cast<double>(b(0) * v[0] + b(1) * v[1]);
      out[i] = static_cast<float>(std::cos(angle));
      out[dim / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  return result;
}

LearnedFourier::LearnedFourier(const Scope& scope, std::int64_t dim, double sigma)
    : frequencies(
          scope.parameter("frequencies", {dim / 2, 2}, Init::normal(static_cast<float>(2 * std::numbers::pi * sigma)))),
      mlp(scope / "mlp", {.dim = dim, .hidden = dim}) {
  check_even(dim);
}

Tensor LearnedFourier::operator()(const Size2& grid, Pass& pass) const {
  const Tensor angles = ops::matmul(fractions(grid), ops::transpose(frequencies, 0, 1));
  // This rotates [1, 0] by θ, which gives [cos θ, sin θ], and applies the factor 1 / √D at once.
  const std::int64_t half = angles.size(1);
  const Tensor start = Tensor::zeros({1, 1, angles.size(0), 2 * half});
  start.narrow(3, 0, half).fill(1 / std::sqrt(static_cast<double>(2 * half)));
  const Tensor features = ops::rotate(start, ops::rotation(angles, ops::RotaryPairs::halves));
  return mlp(ops::reshape(features, {angles.size(0), 2 * half}), pass);
}

Tensor fixed_positions(const AbsoluteConfig& config, const Size2& grid) {
  if (config.kind == AbsoluteKind::sincos || config.kind == AbsoluteKind::sincos_gsd) {
    return sincos_positions(grid, config.dim, config.prefix, config.kind == AbsoluteKind::sincos ? 1 : config.gsd);
  }
  check(is_fixed(config.kind), "these positions are not fixed");
  const Tensor patches = config.kind == AbsoluteKind::sincos1d ? sine_positions(grid[0] * grid[1], config.dim)
                                                               : fourier_positions(grid, config.dim, config.sigma);
  const Tensor table = Tensor::zeros({1, config.prefix + patches.size(0), config.dim});
  table.select(0, 0).narrow(0, config.prefix, patches.size(0)).copy_from(patches);
  return table;
}

AbsolutePositions::AbsolutePositions(const Scope& root, const AbsoluteConfig& config) : config_(config) {
  const Shape shape = {1, config.prefix + config.grid[0] * config.grid[1], config.dim};
  if (config.kind == AbsoluteKind::learned) {
    table_ = root.parameter("pos_embed", shape, Init::trunc_normal(0.02F));
  } else if (is_fixed(config.kind)) {
    table_ = root.buffer("pos_embed", shape, Init::zeros());
    if (root.options().fill == Fill::initialize) {
      table_.copy_from(fixed_positions(config, config.grid));
    }
  } else if (config.kind == AbsoluteKind::fourier_learned) {
    fourier_.emplace(root / "pos_embed", config.dim, config.sigma);
  }
}

Tensor AbsolutePositions::operator()(const Size2& grid, Pass& pass) const {
  if (fourier_) {
    const Tensor patches = ops::unsqueeze((*fourier_)(grid, pass), 0);
    return config_.prefix > 0 ? ops::pad(patches, 1, config_.prefix, 0) : patches;
  }
  if (is_fixed(config_.kind)) {
    return grid == config_.grid ? table_ : fixed_positions(config_, grid);
  }
  return table_.defined() ? resample_positions(table_, config_.grid, grid, config_.prefix, config_.resize) : Tensor();
}

Tensor AbsolutePositions::adapt(const Tensor& value, const Size2& from) const {
  if (!is_fixed(config_.kind)) {
    return resample_positions(value, from, config_.grid, config_.prefix, config_.resize);
  }
  const Tensor table = fixed_positions(config_, config_.grid);
  // A value that differs from the table only by the rounding of another machine's sine is kept, so that a checkpoint
  // stays what it is.
  return value.shape() == table.shape() && is_close(value, table) ? value : table;
}

}  // namespace vitrail::nn
