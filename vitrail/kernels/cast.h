/// \file
/// Conversion between element types.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// to[i] = from[i] for n elements, between any two dtypes. f32 → bf16 rounds to nearest even; floating → integer
/// truncates the fraction and saturates (NaN gives 0); integer → narrower integer keeps the lower bits; anything → bool
/// is whether it is not 0.
void cast(const void* from, DType from_dtype, void* to, DType to_dtype, std::int64_t n);

// Where the CPU or oneDNN cannot compute in bf16, kernels compute in f32 and round the result.

/// x converted to f32, row-major, or channels-last if x is; x itself if it is f32 already.
Tensor widened(const Tensor& x);
/// widened(x), or an undefined tensor if x is undefined.
inline Tensor widened_if_defined(const Tensor& x) { return x.defined() ? widened(x) : Tensor(); }
/// Converts `from`, f32, to the dtype of `to` (f32 or bf16) and writes it there. `to` has the same shape and is
/// row-major or channels-last (else Error).
void narrow_into(const Tensor& from, const Tensor& to);

}  // namespace vitrail::kernels
