/// \file
/// Which elements are chosen: the first in an order, or draws in proportion to weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/random.h"

namespace vitrail::kernels {

// In an order NaN counts as larger than any number, as in PyTorch, and of equal elements the first comes first.

/// What is ordered: the `size` elements of each row of x [outer, size, inner], which is dense.
struct OrderedRows {
  const void* x;
  DType dtype;
  std::int64_t outer;
  std::int64_t size;
  std::int64_t inner;
};

/// indices [outer, k, inner]: where the first k elements of each row are, in descending order or in ascending order. k
/// is at most `size`; with k = size the rows are sorted, which is stable.
void order(const OrderedRows& rows, std::int64_t k, bool descending, std::int64_t* indices);

/// Where the `k` largest of `values` are (all of them, if there are fewer), the largest first.
std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t k);

/// The first index at which the sum of the weights so far exceeds `uniform`, in [0, 1), times the sum of all; one whose
/// weight is 0 is never drawn. The weights are not negative, and one is above 0.
std::int64_t draw(std::span<const float> weights, double uniform);

/// Draws as many indices as there is room in `out`, with replacement or without, of which number i comes of the random
/// number `first` + i, or, without replacement, all of those from `first` on, one for each weight.
void draw_many(std::span<const float> weights, bool replacement, const Philox& draws, std::uint64_t first,
               std::span<std::int64_t> out);

}  // namespace vitrail::kernels
