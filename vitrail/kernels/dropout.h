/// \file
/// Dropout of elements and of whole samples.
#pragma once

#include <cstdint>
#include <span>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/random.h"

namespace vitrail::kernels {

/// y[i] = x[i] / (1 - p) where draws.uniform(i) >= p, else 0, for n elements of `dtype` (f32 or bf16), 0 ≤ p ≤ 1. The
/// gradient is the same function of dy.
void dropout(const Philox& draws, float p, const void* x, void* y, std::int64_t n, DType dtype);

/// y[b] = factors[b] · x[b] for samples of `width` elements each; where a factor is 0, x is not read.
void scale_samples(std::span<const float> factors, const void* x, void* y, std::int64_t width, DType dtype);

}  // namespace vitrail::kernels
