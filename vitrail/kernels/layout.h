// In what order the dimensions of a tensor lie in memory. The kernels for pictures [B, C, H, W] work on channels-last
// memory: a pixel's channels lie together ([B, H, W, C] in memory), seen through the same shape with other strides.
#pragma once

#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// The dimensions of a dense tensor as they lie in memory, the outermost first; empty for row-major memory.
using Order = std::vector<int>;
// Empty, too, for a tensor with gaps or repeated elements.
Order order_of(const Tensor& x);
// Uninitialized, with its dimensions in that order in memory.
Tensor empty_in(const Order& order, const Shape& shape, DType dtype);
// The view of x with its dimensions in that order: contiguous if x lies so.
inline Tensor along(const Order& order, const Tensor& x) {
  return order.empty() ? x : x.permute(std::span<const int>(order));
}

// to = from: same shape and floating dtype, any strides. Faster than Tensor::copy_from for permuted layouts.
void copy_layout(const Tensor& from, const Tensor& to);
// A dense row-major copy, or x itself if it is that already.
Tensor row_major(const Tensor& x);

// Uninitialized, of shape [B, C, H, W], in channels-last memory.
Tensor empty_channels_last(const Shape& shape, DType dtype);
// The view [B, H, W, C] of x [B, C, H, W].
inline Tensor pixels(const Tensor& x) { return x.permute({0, 2, 3, 1}); }
// x [B, C, H, W] in channels-last memory: itself if it lies so already, else a copy.
Tensor channels_last(const Tensor& x);

}  // namespace vitrail::kernels
