/// \file
/// How kernels share work among the OpenMP threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <omp.h>

namespace vitrail::kernels {

/// A unit for parallel_for() over elements of 2 or 4 bytes: parts begin on cache lines and consist of whole vectors.
constexpr std::int64_t lines = 64;

/// The grain for parallel_for() over rows of `width` elements each.
constexpr std::int64_t rows_worth_a_thread(std::int64_t width) {
  return (1 << 13) / std::max<std::int64_t>(width, 1) + 1;
}

/// The number of threads that parallel_for() uses for `n` pieces of work: as many as OpenMP has, but so that each gets
/// at least `grain` pieces; 1 inside a parallel region.
inline int threads_for(std::int64_t n, std::int64_t grain) {
  if (omp_in_parallel() != 0) {
    return 1;
  }
  return static_cast<int>(std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, omp_get_max_threads()));
}

/// Divides [0, n) into threads_for(n, grain) contiguous parts, and calls function(begin, end, part) for each on a
/// thread of its own; `part` counts from 0. The parts depend on n, grain, unit and the number of threads alone, and all
/// but the last are multiples of `unit`. If there is too little work for two threads, the calling thread does all of
/// it.
template <class Function>
void parallel_for(std::int64_t n, std::int64_t grain, std::int64_t unit, Function&& function) {
  const int threads = threads_for(n, grain);
  if (threads == 1) {
    function(std::int64_t{0}, n, 0);
    return;
  }
  const std::int64_t units = (n + unit - 1) / unit;
#pragma omp parallel num_threads(threads)
  {
    // OpenMP may provide fewer threads than requested: those that run share the parts.
    for (int part = omp_get_thread_num(); part < threads; part += omp_get_num_threads()) {
      const std::int64_t begin = std::min(n, units * part / threads * unit);
      const std::int64_t end = std::min(n, units * (part + 1) / threads * unit);
      if (begin < end) {
        function(begin, end, part);
      }
    }
  }
}

template <class Function>
void parallel_for(std::int64_t n, std::int64_t grain, Function&& function) {
  parallel_for(n, grain, 1, std::forward<Function>(function));
}

}  // namespace vitrail::kernels
