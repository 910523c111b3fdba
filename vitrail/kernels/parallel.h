// How kernels share work among the OpenMP threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <omp.h>

namespace vitrail::kernels {

// A unit for parallel_for() over elements of 2 or 4 bytes: parts begin on cache lines, vectors stay whole.
constexpr std::int64_t lines = 64;

// The grain for parallel_for() over rows of `width` elements each.
constexpr std::int64_t rows_worth_a_thread(std::int64_t width) {
  return (1 << 13) / std::max<std::int64_t>(width, 1) + 1;
}

// How many threads parallel_for() takes for `n` pieces of work: no more than there are, and at least `grain` pieces
// each.
inline int threads_for(std::int64_t n, std::int64_t grain) {
  if (omp_in_parallel() != 0) {
    return 1;
  }
  return static_cast<int>(std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, omp_get_max_threads()));
}

// Calls function(begin, end, thread) on each thread for its own part of [0, n): contiguous, and the same whenever n,
// grain and the number of threads are. Parts are multiples of `unit` but for the last. Runs on the calling thread when
// there is too little work for two.
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
    // OpenMP may give fewer threads than asked for: those that came share the parts.
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
