// The memory of tensors: aligned blocks, kept for reuse.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrail {

// Hands out 64-byte-aligned blocks and keeps freed ones in bins by size, since a training step asks for the same sizes
// again and again and fresh pages cost a fault each. One for the process; safe to call from any thread.
class Allocator {
 public:
  struct Statistics {
    std::size_t in_use = 0;                // bytes handed out now
    std::size_t peak = 0;                  // the most ever in use since the last reset_peak()
    std::size_t cached = 0;                // bytes kept for reuse
    std::uint64_t system_allocations = 0;  // how often memory came from the system
  };

  static Allocator& instance();

  // Error (with the sizes) when the limit would be passed or the system has no memory left.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;

  Statistics statistics() const;
  void reset_peak();
  void set_limit(std::size_t bytes);  // for all bytes in use and cached; 0 = no limit
  void trim();                        // gives the cached blocks back to the system

 private:
  Allocator();
  ~Allocator();
  struct State;
  State* state_;
};

}  // namespace vitrail
