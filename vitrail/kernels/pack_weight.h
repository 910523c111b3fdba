// Weights in the blocks that oneDNN's products want.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// A matrix [rows, columns] of f32, of whose strides (in elements) one is 1.
struct PlainWeight {
  const float* data;
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;
};

// The matrix as `to`: blocks of 16 rows (in bf16 of 16 pairs of rows) times `width` columns, which is 16, 32, 48 or 64:
// oneDNN's formats BA16a⟨width⟩b and BA16a⟨width⟩b2a. Zeros fill up the last blocks. Two to six times as fast as
// oneDNN's own conversion.
void pack_weight(const PlainWeight& weight, std::int64_t width, DType dtype, void* to);

}  // namespace vitrail::kernels
