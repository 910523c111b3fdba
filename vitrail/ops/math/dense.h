/// \file
/// Tensors in the memory layouts that kernels take. For this layer's sources only.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Whether the elements of the last dimension are adjacent in memory.
inline bool is_dense_last(const Tensor& x) { return x.size(-1) <= 1 || x.stride(-1) == 1; }
/// x itself if is_dense_last(x), else a contiguous copy.
inline Tensor dense_last(const Tensor& x) { return is_dense_last(x) ? x : x.contiguous(); }
/// x detached from the tape and contiguous (copied if it is not), or an undefined tensor if x is undefined.
inline Tensor dense_or_undefined(const Tensor& x) { return x.defined() ? x.detach().contiguous() : Tensor(); }

}  // namespace vitrail::ops
