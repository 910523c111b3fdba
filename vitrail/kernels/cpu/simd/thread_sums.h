/// \file
/// Sums over rows that are shared among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrail/kernels/parallel.h"

namespace vitrail::kernels {

/// `size` sums, to which each thread adds in a strip of its own, on cache lines of its own; gather() adds the strips in
/// the order of the threads.
class ThreadSums {
 public:
  /// `total` [size] receives the sums in gather(). If it is null, no sums are wanted, and at() returns null.
  ThreadSums(float* total, std::int64_t size, int threads)
      : total_(total),
        size_(static_cast<std::size_t>(size)),
        threads_(static_cast<std::size_t>(threads)),
        strip_(static_cast<std::size_t>((size + lines - 1) / lines * lines)),
        sums_(total == nullptr ? 0 : threads_ * strip_) {}

  /// The strip [size] of a thread, which begins with zeros.
  float* at(int thread) {
    return total_ == nullptr ? nullptr : sums_.data() + static_cast<std::size_t>(thread) * strip_;
  }

  void gather() const {
    for (std::size_t i = 0; total_ != nullptr && i < size_; ++i) {
      total_[i] = 0;
      for (std::size_t thread = 0; thread < threads_; ++thread) {
        total_[i] += sums_[thread * strip_ + i];
      }
    }
  }

 private:
  float* total_;
  std::size_t size_;
  std::size_t threads_;
  std::size_t strip_;
  std::vector<float> sums_;
};

}  // namespace vitrail::kernels
