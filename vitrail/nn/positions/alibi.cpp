#include "vitrail/nn/positions/alibi.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "vitrail/kernels/parallel.h"

namespace vitrail::nn {
namespace {

std::vector<float> slopes_of_power(std::int64_t heads) {
  std::vector<float> result;
  for (std::int64_t h = 1; h <= heads; ++h) {
    result.push_back(static_cast<float>(std::exp2(-8 * static_cast<double>(h) / static_cast<double>(heads))));
  }
  return result;
}

}  // namespace

std::vector<float> alibi_slopes(std::int64_t num_heads) {
  check(num_heads > 0, "ALiBi needs at least one head, not {}", num_heads);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(num_heads)));
  std::vector<float> slopes = slopes_of_power(power);
  const std::vector<float> finer = slopes_of_power(2 * power);
  for (std::size_t i = 0; static_cast<std::int64_t>(slopes.size()) < num_heads; i += 2) {
    slopes.push_back(finer[i]);
  }
  return slopes;
}

Tensor alibi_bias(AlibiKind kind, const Size2& grid, std::int64_t num_heads, std::int64_t prefix) {
  const std::int64_t area = grid[0] * grid[1];
  const std::vector<float> slopes = alibi_slopes(num_heads);
  const auto distance = [&](std::int64_t i, std::int64_t j) {
    if (kind == AlibiKind::sequence) {
      return static_cast<float>(std::abs(i - j));
    }
    const std::int64_t rows = i / grid[1] - j / grid[1];
    const std::int64_t columns = i % grid[1] - j % grid[1];
    return std::sqrt(static_cast<float>(rows * rows + columns * columns));
  };
  const Tensor bias = Tensor::zeros({1, num_heads, prefix + area, prefix + area});
  const std::int64_t head_size = (prefix + area) * (prefix + area);
  kernels::parallel_for(area, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* row = bias.data<float>() + (prefix + i) * (prefix + area) + prefix;
      for (std::int64_t j = 0; j < area; ++j) {
        const float d = distance(i, j);
        for (std::int64_t h = 0; h < num_heads; ++h) {
          row[h * head_size + j] = -slopes[static_cast<std::size_t>(h)] * d;
        }
      }
    }
  });
  return bias;
}

}  // namespace vitrail::nn
