/// \file
/// Vectors looked up by number.
#pragma once

#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// torch.nn.Embedding: the rows of `weight` [count, dim] at indices [...] i64 → [..., dim] f32. The weight starts as
/// N(0, 1), unless `init` says otherwise. If the scope says that it is held for inference (Held), it is a buffer; of
/// i8, there is the buffer `weight_scale` [count] too. The row `padding`, unless it is -1, gets no gradient where it is
/// looked up (torch's padding_idx).
struct Embedding {
  Embedding(const Scope& scope, std::int64_t count, std::int64_t dim, const Init& init = Init::normal(1),
            std::int64_t padding = -1);
  Tensor operator()(const Tensor& indices) const;
  /// x Wᵀ + bias, the scores [..., count] of x [..., dim], in x's dtype: a head that is tied to the embedding. `bias`
  /// [count] may be undefined.
  Tensor scores(const Tensor& x, const Tensor& bias = {}) const;

  std::int64_t padding;
  Tensor weight;
  Tensor weight_scale;  ///< undefined unless the weight is i8
};

}  // namespace vitrail::nn
