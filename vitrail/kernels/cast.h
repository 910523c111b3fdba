/// \file
/// Conversion between element types.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// to[i] = from[i] for n elements, between any two dtypes. f32 → bf16 rounds to nearest even; floating → integer
/// truncates the fraction and saturates (NaN gives 0); integer → narrower integer keeps the lower bits; anything → bool
/// is whether it is not 0.
void cast(const void* from, DType from_dtype, void* to, DType to_dtype, std::int64_t n);

}  // namespace vitrail::kernels
