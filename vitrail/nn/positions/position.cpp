#include "vitrail/nn/positions/position.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/ops/images/interpolate.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

std::int64_t offsets_of(const Size2& window) { return (2 * window[0] - 1) * (2 * window[1] - 1); }

// The table [(2 rows - 1)(2 columns - 1), 2] of scaled(offset, 0) for rows and scaled(offset, 1) for columns.
template <class Scaled>
Tensor offsets_table(const Size2& window, Scaled scaled) {
  std::vector<float> values;
  for (std::int64_t row = 1 - window[0]; row < window[0]; ++row) {
    for (std::int64_t column = 1 - window[1]; column < window[1]; ++column) {
      values.push_back(static_cast<float>(scaled(static_cast<double>(row), 0)));
      values.push_back(static_cast<float>(scaled(static_cast<double>(column), 1)));
    }
  }
  return Tensor::from(values, {offsets_of(window), 2});
}

// The offsets of RelPosMlp.
Tensor scaled_offsets(const Size2& window, bool swin) {
  check(!swin || (window[0] > 1 && window[1] > 1),
        "relative positions of Swin's kind need a window above 1x1, not {}x{}", window[0], window[1]);
  return swin ? log_offsets(window, window) : log_offsets(window);
}

void check_table(const Tensor& table, const Size2& window) {
  check(table.rank() == 2 && table.numel() > 0 && table.size(0) >= offsets_of(window),
        "the table {} of relative positions does not belong to a window of {}x{}", table.shape(), window[0], window[1]);
}

// The places of the offsets -half … half of a table of 2 · (points / 2) + 1 entries in a larger window: 0, ±1,
// ±(1 + q), ±(1 + q + q²) …, with q such that the outermost lies on the edge of the larger window (BEiT).
std::vector<double> geometric_points(std::int64_t points, std::int64_t target) {
  const std::int64_t half = points / 2;
  const std::int64_t target_half = target / 2;
  const auto edge = static_cast<double>(target_half);
  double left = 1.01;
  double right = 1.5;
  double q = left;
  while (right - left > 1e-6) {
    q = (left + right) / 2;
    const double reach = (1 - std::pow(q, static_cast<double>(half))) / (1 - q);
    (reach > edge ? right : left) = q;
  }
  std::vector<double> result = {0};
  double at = 1;
  for (std::int64_t i = 0; i < half; ++i) {
    result.push_back(at);
    result.insert(result.begin(), -at);
    at += std::pow(q, static_cast<double>(i + 1));
  }
  return result;
}

// Where x lies between two of `points`, for linear interpolation: their indices and the weight of the upper one.
struct Between {
  std::size_t lower = 0;
  std::size_t upper = 0;
  double weight = 0;
};
Between locate(const std::vector<double>& points, double x) {
  const auto it = std::ranges::lower_bound(points, x);
  Between result;
  result.upper = std::min(static_cast<std::size_t>(it - points.begin()), points.size() - 1);
  result.lower = result.upper > 0 ? result.upper - 1 : 0;
  const double below = std::max(0.0, x - points[result.lower]);
  const double above = std::max(0.0, points[result.upper] - x);
  result.weight = below + above > 0 ? below / (below + above) : 0.5;
  return result;
}

}  // namespace

Tensor sincos_positions(const Size2& grid, std::int64_t dim, std::int64_t prefix, double scale) {
  check(dim % 4 == 0, "sine-cosine positions need a width divisible by 4, not {}", dim);
  const std::int64_t quarter = dim / 4;
  const Tensor result = Tensor::zeros({1, prefix + grid[0] * grid[1], dim});
  float* out = result.data<float>() + prefix * dim;
  for (std::int64_t row = 0; row < grid[0]; ++row) {
    for (std::int64_t column = 0; column < grid[1]; ++column, out += dim) {
      for (std::int64_t i = 0; i < quarter; ++i) {
        const double omega = scale * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(quarter));
        out[i] = static_cast<float>(std::sin(static_cast<double>(column) * omega));
        out[quarter + i] = static_cast<float>(std::cos(static_cast<double>(column) * omega));
        out[2 * quarter + i] = static_cast<float>(std::sin(static_cast<double>(row) * omega));
        out[3 * quarter + i] = static_cast<float>(std::cos(static_cast<double>(row) * omega));
      }
    }
  }
  return result;
}

Tensor resample_positions(const Tensor& positions, const Size2& from, const Size2& to, std::int64_t prefix,
                          PositionResize resize) {
  check(positions.rank() == 3 && positions.numel() > 0 && positions.size(1) == prefix + from[0] * from[1],
        "the positions {} do not belong to a grid of {}x{} and {} more", positions.shape(), from[0], from[1], prefix);
  const std::int64_t dim = positions.size(2);
  if (from == to) {
    return positions;
  }
  const Tensor grid = ops::narrow(positions, 1, prefix, from[0] * from[1]);
  const Tensor planes = ops::permute(ops::reshape(grid, {1, from[0], from[1], dim}), {0, 3, 1, 2});
  const auto scale = [&](std::size_t axis) {
    return (static_cast<double>(to[axis]) + 0.1) / static_cast<double>(from[axis]);
  };
  const Tensor resized =
      resize == PositionResize::dino
          ? ops::interpolate_by(planes, scale(0), scale(1))
          : ops::interpolate(planes, to[0], to[1], ops::Interpolation::bicubic, resize == PositionResize::timm);
  const Tensor tokens = ops::reshape(ops::permute(resized, {0, 2, 3, 1}), {1, to[0] * to[1], dim});
  return prefix == 0 ? tokens : ops::concat({ops::narrow(positions, 1, 0, prefix), tokens}, 1);
}

Tensor relative_position_index(const Size2& window, std::int64_t prefix) {
  const std::int64_t area = window[0] * window[1];
  const std::int64_t offsets = offsets_of(window);
  const Tensor result = Tensor::empty({area + prefix, area + prefix}, DType::i64);
  std::int64_t* out = result.data<std::int64_t>();
  for (std::int64_t i = -prefix; i < area; ++i) {
    for (std::int64_t j = -prefix; j < area; ++j) {
      if (i < 0 || j < 0) {
        *out++ = i < 0 && j < 0 ? offsets + 2 : (i < 0 ? offsets : offsets + 1);
        continue;
      }
      const std::int64_t rows = i / window[1] - j / window[1] + window[0] - 1;
      const std::int64_t columns = i % window[1] - j % window[1] + window[1] - 1;
      *out++ = rows * (2 * window[1] - 1) + columns;
    }
  }
  return result;
}

Tensor bias_at(const Tensor& table, const Tensor& index) {
  return ops::unsqueeze(ops::contiguous(ops::permute(ops::embedding(table, index), {2, 0, 1})), 0);
}

Tensor log_offsets(const Size2& window) {
  return offsets_table(window,
                       [](double offset, std::size_t) { return std::copysign(std::log1p(std::abs(offset)), offset); });
}

Tensor log_offsets(const Size2& window, const Size2& span) {
  return offsets_table(window, [span](double offset, std::size_t side) {
    const double eighths = 8 * std::abs(offset) / static_cast<double>(std::max<std::int64_t>(span[side] - 1, 1));
    return std::copysign(std::log2(1 + eighths) / 3, offset);
  });
}

RelPosBias::RelPosBias(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t prefix)
    : table(scope.parameter("relative_position_bias_table", {offsets_of(window) + (prefix > 0 ? 3 : 0), num_heads},
                            Init::trunc_normal(0.02F))),
      index(relative_position_index(window, prefix)) {}

Tensor RelPosBias::operator()(Pass& /*pass*/) const { return bias_at(table, index); }

RelPosMlp::RelPosMlp(const Scope& scope, const Size2& window, std::int64_t num_heads, std::int64_t hidden,
                     std::int64_t prefix_tokens, bool swin_mode)
    : swin(swin_mode),
      prefix(prefix_tokens),
      mlp(scope / "mlp", {.dim = 2,
                          .hidden = hidden,
                          .out = num_heads,
                          .activation = ops::Activation::relu,
                          .fc2_bias = !swin_mode,
                          .drop1 = 0.125F}),
      offsets(scaled_offsets(window, swin_mode)),
      index(relative_position_index(window, 0)) {}

Tensor RelPosMlp::operator()(Pass& pass) const {
  Tensor bias = bias_at(mlp(offsets, pass), index);
  if (swin) {
    bias = ops::sigmoid(bias) * 16.0F;
  }
  if (prefix > 0) {
    bias = ops::pad(ops::pad(bias, 2, prefix, 0), 3, prefix, 0);
  }
  return bias;
}

Tensor interpolate_bias_table(const Tensor& table, const Size2& from, const Size2& to) {
  if (from == to) {
    return table;
  }
  check_table(table, from);
  const std::int64_t offsets = offsets_of(from);
  const Tensor grid =
      ops::reshape(ops::narrow(table, 0, 0, offsets), {1, 2 * from[0] - 1, 2 * from[1] - 1, table.size(1)});
  const Tensor resized =
      ops::interpolate(ops::permute(grid, {0, 3, 1, 2}), 2 * to[0] - 1, 2 * to[1] - 1, ops::Interpolation::bilinear);
  const Tensor rows = ops::reshape(ops::permute(resized, {0, 2, 3, 1}), {offsets_of(to), table.size(1)});
  return ops::concat({rows, ops::narrow(table, 0, offsets, table.size(0) - offsets)}, 0);
}

Tensor resample_bias_table(const Tensor& table, const Size2& from, const Size2& to) {
  if (from == to) {
    return table;
  }
  check_table(table, from);
  const std::int64_t heads = table.size(1);
  const std::int64_t extra = table.size(0) - offsets_of(from);
  const Size2 source = {2 * from[0] - 1, 2 * from[1] - 1};
  const Size2 target = {2 * to[0] - 1, 2 * to[1] - 1};
  const std::vector<double> rows = geometric_points(source[0], target[0]);
  const std::vector<double> columns = geometric_points(source[1], target[1]);
  const std::vector<float> in = table.values();
  std::vector<float> out;
  const auto at = [&](std::size_t row, std::size_t column, std::int64_t head) {
    return static_cast<double>(
        in[(row * static_cast<std::size_t>(source[1]) + column) * static_cast<std::size_t>(heads) +
           static_cast<std::size_t>(head)]);
  };
  for (std::int64_t r = -(target[0] / 2); r <= target[0] / 2; ++r) {
    const Between y = locate(rows, static_cast<double>(r));
    for (std::int64_t c = -(target[1] / 2); c <= target[1] / 2; ++c) {
      const Between x = locate(columns, static_cast<double>(c));
      for (std::int64_t h = 0; h < heads; ++h) {
        const double top = (1 - x.weight) * at(y.lower, x.lower, h) + x.weight * at(y.lower, x.upper, h);
        const double bottom = (1 - x.weight) * at(y.upper, x.lower, h) + x.weight * at(y.upper, x.upper, h);
        out.push_back(static_cast<float>((1 - y.weight) * top + y.weight * bottom));
      }
    }
  }
  out.insert(out.end(), in.end() - extra * heads, in.end());
  return Tensor::from(out, {static_cast<std::int64_t>(out.size()) / heads, heads});
}

}  // namespace vitrail::nn
