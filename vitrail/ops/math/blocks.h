/// \file
/// The shape of a tensor as work along one of its dimensions needs it.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// The shape of x as [outer, size, inner]: `size` is that of dimension `dim`, `outer` and `inner` are the products of
/// the sizes before and behind it.
struct Blocks {
  Blocks(const Tensor& x, int dim) : size(x.size(dim)) {
    const int at = x.shape().wrap(dim);
    for (int i = 0; i < x.rank(); ++i) {
      (i < at ? outer : inner) *= i == at ? 1 : x.size(i);
    }
  }
  std::int64_t outer = 1;
  std::int64_t size;
  std::int64_t inner = 1;
};

}  // namespace vitrail::ops
