// Pooling of pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// The input rows (or columns) [begin, end) that one output row (or column) takes together, and how many it divides by
// in an average (more than there are where padding counts).
struct Window {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t count;
};
using Windows = std::vector<Window>;

// x [B, C, H, W] → y [B, C, |rows|, |columns|], channels-last, f32 or bf16. `origin` of y's shape, channels-last i32,
// takes the place (row · W + column) of each maximum, the first of equals, unless it is undefined; NaN counts as the
// largest. Windows that begin later end no earlier.
void max_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y, const Tensor& origin);
void max_pool_gradient(const Tensor& dy, const Tensor& origin, const Windows& rows, const Windows& columns,
                       const Tensor& dx);
// The mean of each window, in f32.
void average_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y);
void average_pool_gradient(const Tensor& dy, const Windows& rows, const Windows& columns, const Tensor& dx);

}  // namespace vitrail::kernels
