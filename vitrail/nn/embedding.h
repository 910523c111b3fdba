/// \file
/// Vectors looked up by number.
#pragma once

#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// torch.nn.Embedding: the rows of `weight` [count, dim] f32 at indices [...] i64 → [..., dim]. The weight starts as
/// N(0, 1), unless `init` says otherwise.
struct Embedding {
  Embedding(const Scope& scope, std::int64_t count, std::int64_t dim, const Init& init = Init::normal(1))
      : weight(scope.parameter("weight", {count, dim}, init)) {}
  Tensor operator()(const Tensor& indices) const { return ops::embedding(weight, indices); }

  Tensor weight;
};

}  // namespace vitrail::nn
