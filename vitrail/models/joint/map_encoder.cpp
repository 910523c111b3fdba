#include "vitrail/models/joint/map_encoder.h"

#include <algorithm>

#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

nn::Scope with_glorot(const nn::Scope& scope) {
  return scope.with_init([](std::string_view name, const Shape& shape, const nn::Init& own) {
    return shape.rank() == 2                              ? nn::Init::xavier_uniform(shape)
           : shape.rank() == 1 && name.ends_with(".bias") ? nn::Init::zeros()
                                                          : own;
  });
}

}  // namespace

MapEncoder::MapEncoder(const nn::Scope& scope, std::int64_t features, std::int64_t dim, std::int64_t layers)
    : projection_(with_glorot(scope) / "projection", features, dim), norm_(scope / "norm", dim, nn::NormConfig{}) {
  nn::BlockConfig block;
  block.attention = {.dim = dim, .num_heads = std::max<std::int64_t>(1, dim / 64), .qkv_bias = true};
  block.mlp = {.dim = dim, .hidden = 2 * dim};
  for (std::int64_t i = 0; i < layers; ++i) {
    blocks_.emplace_back(with_glorot(scope) / "blocks" / i, block);
  }
}

Tensor MapEncoder::operator()(const Tensor& features, const nn::Size2& grid, std::int64_t prefix,
                              nn::Pass& pass) const {
  const Tensor projected = projection_(features);
  Tensor x = projected + ops::cast(nn::sincos_positions(grid, projected.size(2), prefix), pass.dtype);
  for (const nn::Block& block : blocks_) {
    x = block(x, pass);
  }
  return norm_(x);
}

}  // namespace vitrail::models
