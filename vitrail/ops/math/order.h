/// \file
/// Sorting, and the best of many.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Elements in order, and where they were.
struct Ordered {
  Tensor values;   ///< differentiable, if they are f32 or bf16
  Tensor indices;  ///< i64
};

// Both take tensors of any dtype. NaN counts as larger than any number, as in PyTorch, and of equal elements the first
// comes first, which PyTorch leaves open unless it is asked for a stable order.

/// x sorted along `dim`, as torch.sort with stable=True.
Ordered sort(const Tensor& x, int dim = -1, bool descending = false);
/// The k largest elements of x along `dim`, the largest first, or the k smallest ones, as torch.topk. Throws Error
/// unless there are so many.
Ordered topk(const Tensor& x, std::int64_t k, int dim = -1, bool largest = true);

}  // namespace vitrail::ops
