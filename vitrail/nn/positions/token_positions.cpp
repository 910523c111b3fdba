#include "vitrail/nn/positions/token_positions.h"

#include "vitrail/nn/positions/absolute_position.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The columns of sine_positions() in another order: the even ones, which are sines, before the odd ones.
Tensor sines_first(const Tensor& sines) {
  const std::int64_t length = sines.size(0);
  const std::int64_t dim = sines.size(1);
  return sines.reshape({length, dim / 2, 2}).permute({0, 2, 1}).contiguous().reshape({length, dim});
}

}  // namespace

TokenPositions::TokenPositions(const Scope& scope, const TokenPositionsConfig& config) : config_(config) {
  if (config_.kind == TokenPositionKind::learned || config_.kind == TokenPositionKind::learned_sines) {
    table_.emplace(scope, config_.count, config_.dim);
  }
  if (config_.kind == TokenPositionKind::learned_sines && scope.options().fill == Fill::initialize) {
    table_->weight.copy_from(sine_positions(config_.count, config_.dim));
  }
}

Tensor TokenPositions::operator()(std::int64_t begin, std::int64_t length) const {
  const std::int64_t first = begin + config_.offset;
  switch (config_.kind) {
    case TokenPositionKind::none:
      return {};
    case TokenPositionKind::learned:
    case TokenPositionKind::learned_sines:
      return ops::narrow(table_->weight, 0, first, length);
    case TokenPositionKind::sines:
      return sine_positions(first + length, config_.dim).narrow(0, first, length);
    case TokenPositionKind::sine_halves:
      return sines_first(sine_positions(first + length, config_.dim)).narrow(0, first, length);
  }
  fail("no such kind of positions: {}", static_cast<int>(config_.kind));
}

}  // namespace vitrail::nn
