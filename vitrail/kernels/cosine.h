/// \file
/// Queries and keys scaled to unit length, for cosine attention.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The shape of a packed projection [rows, 3, heads, dim], f32 or bf16, dense: a row has q, k and v of one token.
struct PackedHeads {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  DType dtype = DType::f32;
};

/// y = [scale_h q / |q|, k / |k|, v] for each row and head h; scale [heads]. A length below 1e-12 counts as 1e-12.
void cosine_forward(const PackedHeads& shape, const void* qkv, const float* scale, void* y);

/// Computes dqkv and dscale [heads] from dy; both are overwritten. Deterministic for a given number of threads.
void cosine_backward(const PackedHeads& shape, const void* qkv, const float* scale, const void* dy, void* dqkv,
                     float* dscale);

}  // namespace vitrail::kernels
