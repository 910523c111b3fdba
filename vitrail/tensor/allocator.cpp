#include "vitrail/tensor/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "vitrail/tensor/error.h"

namespace vitrail {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t largest = std::size_t{1} << 48;

// Sizes are rounded up to eighths of a power of two, so that nearly equal requests share a bin at ≤ 12.5 % of waste.
std::size_t bin_size(std::size_t bytes) {
  const std::size_t size = std::max(bytes, std::size_t{512});
  const std::size_t step = std::max(std::bit_floor(size) / 8, alignment);
  return (size + step - 1) / step * step;
}

// Blocks from this size on may also serve requests for less, down to half of them: what shrinks step by step, as texts
// of a batch end, would else take a bin of fresh memory at each size.
constexpr std::size_t shared_size = std::size_t{4} << 20;

// Memory from the system, or null. Large blocks request huge pages, which cost fewer page faults at the first access
// and fewer TLB misses later.
void* system_memory(std::size_t size) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  if (size >= huge_page) {
    void* block = nullptr;
    if (posix_memalign(&block, huge_page, size) != 0) {
      return nullptr;
    }
    madvise(block, size, MADV_HUGEPAGE);  // only advice: the block is usable even if it is not taken
    return block;
  }
#endif
  return std::aligned_alloc(alignment, size);
}

}  // namespace

struct Allocator::State {
  mutable std::mutex mutex;
  std::unordered_map<std::size_t, std::vector<void*>> bins;
  std::unordered_map<void*, std::size_t>
      lent;  // the sizes of blocks in use that are of a larger bin than was asked for
  Statistics statistics;
  std::size_t limit = 0;

  // Takes a block of the bin out of the cache; null if it has none.
  void* take(std::size_t size) {
    const auto bin = bins.find(size);
    if (bin == bins.end() || bin->second.empty()) {
      return nullptr;
    }
    void* const block = bin->second.back();
    bin->second.pop_back();
    statistics.cached -= size;
    return block;
  }

  // The same of the next larger bins, up to twice the size, which becomes that of the block.
  void* take_larger(std::size_t& size) {
    for (std::size_t larger = bin_size(size + 1); size >= shared_size && larger <= 2 * size;
         larger = bin_size(larger + 1)) {
      if (void* const block = take(larger)) {
        lent.emplace(block, larger);
        size = larger;
        return block;
      }
    }
    return nullptr;
  }

  void trim() {
    for (auto& [size, blocks] : bins) {
      for (void* block : blocks) {
        std::free(block);
      }
    }
    bins.clear();
    statistics.cached = 0;
  }
};

Allocator::Allocator() : state_(new State) {}
Allocator::~Allocator() {
  state_->trim();
  delete state_;
}

Allocator& Allocator::instance() {
  // The allocator is never destroyed, because tensors with static storage duration may outlive every other static.
  static auto* const allocator = new Allocator;
  return *allocator;
}

void* Allocator::allocate(std::size_t bytes) {
  check(bytes <= largest, "out of memory: no system has {} MiB", bytes >> 20);
  std::size_t size = bin_size(bytes);
  const std::lock_guard lock(state_->mutex);
  Statistics& now = state_->statistics;
  void* block = state_->take(size);
  if (block == nullptr) {
    block = state_->take_larger(size);
  }
  if (block == nullptr) {
    if (state_->limit > 0 && now.in_use + now.cached + size > state_->limit) {
      state_->trim();
      check(now.in_use + size <= state_->limit,
            "out of memory: {} MiB more are needed, but {} MiB of the limit of {} MiB are in use", (size >> 20) + 1,
            now.in_use >> 20, state_->limit >> 20);
    }
    block = system_memory(size);
    if (block == nullptr) {
      state_->trim();
      block = system_memory(size);
    }
    check(block != nullptr, "out of memory: the system has no {} MiB left ({} MiB are in use)", (size >> 20) + 1,
          now.in_use >> 20);
    ++now.system_allocations;
  }
  now.in_use += size;
  now.peak = std::max(now.peak, now.in_use);
  return block;
}

void Allocator::release(void* block, std::size_t bytes) noexcept {
  std::size_t size = bin_size(bytes);
  const std::lock_guard lock(state_->mutex);
  if (const auto larger = state_->lent.find(block); size >= shared_size && larger != state_->lent.end()) {
    size = larger->second;
    state_->lent.erase(larger);
  }
  state_->statistics.in_use -= size;
  try {
    state_->bins[size].push_back(block);
    state_->statistics.cached += size;
  } catch (...) {  // no memory is left even to enter the block in its bin
    std::free(block);
  }
}

Allocator::Statistics Allocator::statistics() const {
  const std::lock_guard lock(state_->mutex);
  return state_->statistics;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  state_->statistics.peak = state_->statistics.in_use;
}

void Allocator::set_limit(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->limit = bytes;
}

void Allocator::trim() {
  const std::lock_guard lock(state_->mutex);
  state_->trim();
}

}  // namespace vitrail
