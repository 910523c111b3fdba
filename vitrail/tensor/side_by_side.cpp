#include "vitrail/tensor/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <omp.h>

namespace vitrail {
namespace {

// Kernels of the calling thread use one thread while an object of it lives.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace

void side_by_side(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  if (threads <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) {
      work(i);
    }
    return;
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work_on = [&] {
    const OneThread kernels;
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        work(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = error ? error : std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(static_cast<std::size_t>(threads), count); ++i) {
      others.emplace_back(work_on);
    }
    work_on();
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

void batches_side_by_side(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  side_by_side(count, count < static_cast<std::size_t>(threads) ? 1 : threads, work);
}

}  // namespace vitrail
