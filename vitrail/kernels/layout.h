/// \file
/// The order in which the dimensions of a tensor are stored. The kernels for images [B, C, H, W] work on channels-last
/// memory: the channels of a pixel are adjacent ([B, H, W, C] in memory), while the shape stays [B, C, H, W], with
/// other strides.
#pragma once

#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// The dimensions of a dense tensor in the order in which they are stored, the outermost first; empty for row-major
/// memory.
using Order = std::vector<int>;
/// The order of x; also empty for a tensor with gaps or repeated elements.
Order order_of(const Tensor& x);
/// An uninitialized tensor of `shape` whose dimensions are stored in `order`.
Tensor empty_in(const Order& order, const Shape& shape, DType dtype);
/// The view of x with its dimensions permuted to `order`: contiguous if x is stored in that order.
inline Tensor along(const Order& order, const Tensor& x) {
  return order.empty() ? x : x.permute(std::span<const int>(order));
}

/// Copies `from` to `to`, both of the same shape and floating dtype (else Error), with any strides. It is faster than
/// Tensor::copy_from for permuted layouts.
void copy_layout(const Tensor& from, const Tensor& to);
/// x in row-major memory: x itself if it is contiguous, else a copy.
Tensor row_major(const Tensor& x);

/// An uninitialized tensor of shape [B, C, H, W] in channels-last memory.
Tensor empty_channels_last(const Shape& shape, DType dtype);
/// The view [B, H, W, C] of x [B, C, H, W].
inline Tensor pixels(const Tensor& x) { return x.permute({0, 2, 3, 1}); }
/// x [B, C, H, W] in channels-last memory: x itself (detached) if it is stored so already, else a copy.
Tensor channels_last(const Tensor& x);

}  // namespace vitrail::kernels
