// bf16 where the CPU (or oneDNN on it) has none: compute in f32 and round the result.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// The same values as f32, row-major, or channels-last if x is; the tensor itself if it is f32 already.
Tensor widened(const Tensor& x);
// The same for one that may be undefined.
inline Tensor widened_if_defined(const Tensor& x) { return x.defined() ? widened(x) : Tensor(); }
// Writes f32 values into `to` (f32 or bf16) of the same shape, row-major or channels-last.
void narrow_into(const Tensor& from, const Tensor& to);

}  // namespace vitrail::kernels
