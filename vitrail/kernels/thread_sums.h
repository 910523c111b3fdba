// Sums over rows that several threads share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrail/kernels/parallel.h"

namespace vitrail::kernels {

// Each thread adds into a strip of its own, on cache lines of its own; the strips are added in the order of the
// threads.
class ThreadSums {
 public:
  // `total` [size] receives the sums from gather(); null: nothing is wanted, and at() is null too.
  ThreadSums(float* total, std::int64_t size, int threads)
      : total_(total),
        size_(static_cast<std::size_t>(size)),
        threads_(static_cast<std::size_t>(threads)),
        strip_(static_cast<std::size_t>((size + lines - 1) / lines * lines)),
        sums_(total == nullptr ? 0 : threads_ * strip_) {}

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
