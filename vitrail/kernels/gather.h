// Slices and elements copied by index, and added back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// x [outer, size, slice] dense, with slices of `slice_bytes` → out [outer, K, slice]: out[o, k] = x[o, indices[k]] for
// the K indices, all in 0 … size - 1.
void gather_slices(const void* x, std::int64_t outer, std::int64_t size, std::size_t slice_bytes,
                   std::span<const std::int64_t> indices, void* out);

// The adjoint: sum[o, indices[k], s] += dy[o, k, s] with sum [outer, size, slice] f32 and dy [outer, K, slice] f32 or
// bf16. Contributions to one element add up in the order of k, whatever the number of threads.
void scatter_add_slices(const void* dy, DType dtype, std::int64_t outer, std::int64_t size, std::int64_t slice,
                        std::span<const std::int64_t> indices, float* sum);

// Element (o, k, s) of [outer, count, inner] belongs to element (o, indices[o, k, s], s) of [outer, size, inner].
struct ElementMap {
  std::int64_t outer;
  std::int64_t size;
  std::int64_t inner;
  std::int64_t count;
  const std::int64_t* indices;  // [outer, count, inner], in 0 … size - 1
};

// out [outer, count, inner] from x [outer, size, inner], elements of `width` bytes.
void gather_mapped(const ElementMap& map, const void* x, std::size_t width, void* out);
// The adjoint, in the order of k as above: sum [outer, size, inner] f32, dy [outer, count, inner] f32 or bf16.
void scatter_add_mapped(const ElementMap& map, const void* dy, DType dtype, float* sum);

}  // namespace vitrail::kernels
