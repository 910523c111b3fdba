/// \file
/// Pooling of images.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// The input rows (or columns) [begin, end) that one output row (or column) pools, and the number `count` that an
/// average divides by (more than end - begin where padding counts).
struct Window {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t count;
};
using Windows = std::vector<Window>;

/// Max pooling of x [B, C, H, W] to y [B, C, |rows|, |columns|], both channels-last and of one dtype, f32 or bf16.
/// `origin`, channels-last i32 of y's shape, receives the position (row · W + column) of each maximum, the first of
/// equal ones, unless it is undefined. NaN counts as the largest. A window that begins later must end no earlier.
void max_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y, const Tensor& origin);
/// The gradient dx of the input of max_pool(), from dy and the `origin` that max_pool() has written.
void max_pool_gradient(const Tensor& dy, const Tensor& origin, const Windows& rows, const Windows& columns,
                       const Tensor& dx);
/// Average pooling of x [B, C, H, W] to y [B, C, |rows|, |columns|], both channels-last f32: the mean of each window.
void average_pool(const Tensor& x, const Windows& rows, const Windows& columns, const Tensor& y);
/// The gradient dx of the input of average_pool(), from dy.
void average_pool_gradient(const Tensor& dy, const Windows& rows, const Windows& columns, const Tensor& dx);

}  // namespace vitrail::kernels
