#include "vitrail/kernels/gather.h"

#include <cstring>

#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/error.h"

namespace vitrail::kernels {
namespace {

constexpr std::int64_t grain_bytes = 1 << 16;

template <class T>
void scatter_add_typed(const T* dy, std::int64_t outer, std::int64_t size, std::int64_t slice,
                       std::span<const std::int64_t> indices, float* sum) {
  const auto count = static_cast<std::int64_t>(indices.size());
  // Threads own columns of slices rather than indices, so that no two meet at a repeated one.
  const std::int64_t unit = 16;
  parallel_for(slice, (1 << 14) / std::max<std::int64_t>(outer * count, 1) + unit, unit,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t row = 0; row < outer * count; ++row) {
                   const std::int64_t index = indices[static_cast<std::size_t>(row % count)];
                   float* out = sum + (row / count * size + index) * slice;
                   const T* in = dy + row * slice;
                   for (std::int64_t i = begin; i < end; ++i) {
                     out[i] += static_cast<float>(in[i]);
                   }
                 }
               });
}

}  // namespace

void gather_slices(const void* x, std::int64_t outer, std::int64_t size, std::size_t slice_bytes,
                   std::span<const std::int64_t> indices, void* out) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto bytes = static_cast<std::int64_t>(slice_bytes);
  parallel_for(outer * count, grain_bytes / std::max<std::int64_t>(bytes, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const std::int64_t index = indices[static_cast<std::size_t>(row % count)];
                   std::memcpy(static_cast<std::byte*>(out) + row * bytes,
                               static_cast<const std::byte*>(x) + (row / count * size + index) * bytes, slice_bytes);
                 }
               });
}

void scatter_add_slices(const void* dy, DType dtype, std::int64_t outer, std::int64_t size, std::int64_t slice,
                        std::span<const std::int64_t> indices, float* sum) {
  check(is_floating(dtype), "scatter_add_slices() adds f32 or bf16, not {}", name_of(dtype));
  if (dtype == DType::bf16) {
    scatter_add_typed(static_cast<const bf16*>(dy), outer, size, slice, indices, sum);
  } else {
    scatter_add_typed(static_cast<const float*>(dy), outer, size, slice, indices, sum);
  }
}

}  // namespace vitrail::kernels
