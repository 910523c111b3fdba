#include "vitrail/kernels/gather.h"

#include <cstring>

#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

constexpr std::int64_t grain_bytes = 1 << 16;

// Threads share the columns of the slices, not the indices, so that no two of them add to one element where an index is
// repeated.
template <class T>
void scatter_add_typed(const T* dy, std::int64_t outer, std::int64_t size, std::int64_t slice,
                       std::span<const std::int64_t> indices, float* sum) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t unit = 16;  // a cache line of sums
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

// Calls visit(position in [outer, count, inner], position in [outer, size, inner]) for all elements; those of one
// (o, s) are visited in the order of k on one thread.
template <class Visit>
void for_mapped(const ElementMap& map, const Visit& visit) {
  parallel_for(map.outer * map.inner, (1 << 14) / std::max<std::int64_t>(map.count, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t o = i / map.inner;
                   const std::int64_t s = i % map.inner;
                   for (std::int64_t k = 0; k < map.count; ++k) {
                     const std::int64_t place = (o * map.count + k) * map.inner + s;
                     visit(place, (o * map.size + map.indices[place]) * map.inner + s);
                   }
                 }
               });
}

// Calls `function` with `data` as a pointer to float or bf16, as `dtype` says; Error for any other dtype.
template <class Function>
void with_floats(const char* kernel, const void* data, DType dtype, const Function& function) {
  check(is_floating(dtype), "{}() adds f32 or bf16, not {}", kernel, name_of(dtype));
  if (dtype == DType::bf16) {
    function(static_cast<const bf16*>(data));
  } else {
    function(static_cast<const float*>(data));
  }
}

}  // namespace

void gather_slices(const void* x, std::int64_t outer, std::int64_t size, std::size_t slice_bytes,
                   std::span<const std::int64_t> indices, void* out) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto bytes = static_cast<std::int64_t>(slice_bytes);
  Profile::traffic(outer * count * bytes, DType::u8, 2);
  parallel_for(outer * count, grain_bytes / std::max<std::int64_t>(bytes, 1) + 1,
               [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const std::int64_t index = indices[static_cast<std::size_t>(row % count)];
                   std::byte* const to = static_cast<std::byte*>(out) + row * bytes;
                   if (index < 0) {
                     std::memset(to, 0, slice_bytes);
                     continue;
                   }
                   std::memcpy(to, static_cast<const std::byte*>(x) + (row / count * size + index) * bytes,
                               slice_bytes);
                 }
               });
}

void scatter_add_slices(const void* dy, DType dtype, std::int64_t outer, std::int64_t size, std::int64_t slice,
                        std::span<const std::int64_t> indices, float* sum) {
  Profile::traffic(outer * static_cast<std::int64_t>(indices.size()) * slice, dtype, 1);
  with_floats("scatter_add_slices", dy, dtype,
              [&](const auto* values) { scatter_add_typed(values, outer, size, slice, indices, sum); });
}

void gather_mapped(const ElementMap& map, const void* x, std::size_t width, void* out) {
  const auto* const from = static_cast<const std::byte*>(x);
  auto* const to = static_cast<std::byte*>(out);
  const auto bytes = static_cast<std::int64_t>(width);
  for_mapped(map, [&](std::int64_t place, std::int64_t source) {
    std::memcpy(to + place * bytes, from + source * bytes, width);
  });
}

void scatter_add_mapped(const ElementMap& map, const void* dy, DType dtype, float* sum) {
  with_floats("scatter_add_mapped", dy, dtype, [&](const auto* values) {
    for_mapped(map, [&](std::int64_t place, std::int64_t target) { sum[target] += static_cast<float>(values[place]); });
  });
}

}  // namespace vitrail::kernels
