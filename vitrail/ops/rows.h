// For this folder's sources only.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x [..., D] as a matrix of its rows, without its gradient; copied if they do not lie one after the other.
inline Tensor rows_of(const Tensor& x) {
  std::int64_t rows = 1;
  for (int d = 0; d < x.rank() - 1; ++d) {
    rows *= x.size(d);
  }
  return x.detach().reshape({rows, x.size(-1)}).contiguous();
}

}  // namespace vitrail::ops
