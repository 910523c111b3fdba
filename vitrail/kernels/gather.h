/// \file
/// Slices and elements gathered by index, and the adjoints, which scatter and add them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// out[o, k] = x[o, indices[k]], slice by slice: x [outer, size, slice] and out [outer, K, slice] are dense, with
/// slices of `slice_bytes` bytes, and the K indices lie in 0 … size - 1. An index of -1 gives a slice of zeros.
void gather_slices(const void* x, std::int64_t outer, std::int64_t size, std::size_t slice_bytes,
                   std::span<const std::int64_t> indices, void* out);

/// The adjoint of gather_slices(): sum[o, indices[k], s] += dy[o, k, s], with sum [outer, size, slice] f32 and dy
/// [outer, K, slice] f32 or bf16. Contributions to one element are added in the order of k, whatever the number of
/// threads.
void scatter_add_slices(const void* dy, DType dtype, std::int64_t outer, std::int64_t size, std::int64_t slice,
                        std::span<const std::int64_t> indices, float* sum);

/// A map along one dimension: element (o, k, s) of a tensor [outer, count, inner] corresponds to element (o,
/// indices[o, k, s], s) of a tensor [outer, size, inner].
struct ElementMap {
  std::int64_t outer;
  std::int64_t size;
  std::int64_t inner;
  std::int64_t count;
  const std::int64_t* indices;  ///< [outer, count, inner], in 0 … size - 1
};

/// Gathers out [outer, count, inner] from x [outer, size, inner] by `map`; elements have `width` bytes.
void gather_mapped(const ElementMap& map, const void* x, std::size_t width, void* out);
/// The adjoint of gather_mapped(): adds dy [outer, count, inner], f32 or bf16, to sum [outer, size, inner] f32, in the
/// order of k whatever the number of threads.
void scatter_add_mapped(const ElementMap& map, const void* dy, DType dtype, float* sum);

}  // namespace vitrail::kernels
