#include "vitrail/nn/positions/distance_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "vitrail/nn/positions/alibi.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

Tensor slopes_of(const Scope& scope, const DistanceBiasConfig& config) {
  const std::vector<float> slopes = alibi_slopes(config.num_heads);
  if (config.kind == DistanceBiasKind::alibi) {
    return Tensor::from(slopes, {config.num_heads});
  }
  std::vector<Init> inits;
  inits.reserve(slopes.size());
  for (const float slope : slopes) {
    inits.push_back(Init::constant(slope));
  }
  return scope.parameter("alibi_slopes", {config.num_heads}, Init::in_parts(std::move(inits)));
}

// The rows of the table of offsets.
std::int64_t rows_of(const DistanceBiasConfig& config) {
  if (config.kind == DistanceBiasKind::buckets) {
    return config.num_buckets;
  }
  return (config.bidirectional ? 2 : 1) * config.max_distance + 1;
}

bool is_alibi(const DistanceBiasConfig& config) {
  return config.kind == DistanceBiasKind::alibi || config.kind == DistanceBiasKind::alibi_learned;
}

Tensor bias_weight(const Scope& scope, const DistanceBiasConfig& config) {
  if (is_alibi(config)) {
    return slopes_of(scope, config);
  }
  check(config.max_distance >= 1, "{}: relative positions need a distance of at least 1, not {}", scope.path(),
        config.max_distance);
  if (config.kind == DistanceBiasKind::buckets) {
    const std::int64_t of_direction = config.num_buckets / (config.bidirectional ? 2 : 1);
    check(of_direction >= 2 && config.max_distance > of_direction / 2,
          "{}: {} buckets of relative positions cannot reach up to {}: there are {} for a direction, half of them for "
          "one distance each",
          scope.path(), config.num_buckets, config.max_distance, of_direction);
  }
  return (scope / "relative_attention_bias")
      .parameter("weight", {rows_of(config), config.num_heads}, Init::normal(0.02F));
}

std::int64_t row_of_offset(const DistanceBiasConfig& config, std::int64_t offset) {
  if (config.kind == DistanceBiasKind::buckets) {
    return relative_position_bucket(offset, config.bidirectional, config.num_buckets, config.max_distance);
  }
  const std::int64_t near = std::clamp(offset, -config.max_distance, config.max_distance);
  return config.bidirectional ? config.max_distance + near : std::max<std::int64_t>(-near, 0);
}

}  // namespace

std::int64_t relative_position_bucket(std::int64_t relative_position, bool bidirectional, std::int64_t num_buckets,
                                      std::int64_t max_distance) {
  const std::int64_t buckets = bidirectional ? num_buckets / 2 : num_buckets;
  const std::int64_t first = bidirectional && relative_position > 0 ? buckets : 0;
  const std::int64_t distance =
      bidirectional ? std::abs(relative_position) : std::max<std::int64_t>(-relative_position, 0);
  const std::int64_t exact = buckets / 2;
  if (distance < exact) {
    return first + distance;
  }
  // In f32, as there.
  const auto whole = static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float part = std::log(static_cast<float>(distance) / static_cast<float>(exact)) / whole;
  const std::int64_t further = exact + static_cast<std::int64_t>(part * static_cast<float>(buckets - exact));
  return first + std::min(further, buckets - 1);
}

DistanceBias::DistanceBias(const Scope& scope, const DistanceBiasConfig& config)
    : config_(config), weight_(bias_weight(scope, config)) {}

Tensor DistanceBias::operator()(std::int64_t length) const {
  const std::int64_t count = 2 * length - 1;
  if (is_alibi(config_)) {
    std::vector<float> distances;
    for (std::int64_t offset = 1 - length; offset < length; ++offset) {
      distances.push_back(-static_cast<float>(std::abs(offset)));
    }
    return ops::reshape(weight_, {config_.num_heads, 1}) * Tensor::from(distances, {1, count});
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t offset = 1 - length; offset < length; ++offset) {
    rows.push_back(row_of_offset(config_, offset));
  }
  return ops::contiguous(ops::transpose(ops::embedding(weight_, Tensor::from(rows, {count})), 0, 1));
}

}  // namespace vitrail::nn
