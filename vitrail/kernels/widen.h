/// \file
/// Conversions for bf16 where the CPU or oneDNN cannot compute in it: kernels then compute in f32 and round the result.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// x converted to f32, row-major, or channels-last if x is; x itself if it is f32 already.
Tensor widened(const Tensor& x);
/// widened(x), or an undefined tensor if x is undefined.
inline Tensor widened_if_defined(const Tensor& x) { return x.defined() ? widened(x) : Tensor(); }
/// Converts `from`, f32, to the dtype of `to` (f32 or bf16) and writes it there. `to` has the same shape and is
/// row-major or channels-last (else Error).
void narrow_into(const Tensor& from, const Tensor& to);

}  // namespace vitrail::kernels
