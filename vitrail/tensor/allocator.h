/// \file
/// The memory of tensors: aligned blocks, kept for reuse.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrail {

/// Hands out 64-byte-aligned blocks and keeps freed ones in bins by size: a training step asks for the same sizes again
/// and again, and each page of fresh memory costs a page fault. There is one allocator per process; it is safe to use
/// from any thread.
class Allocator {
 public:
  struct Statistics {
    std::size_t in_use = 0;                ///< bytes handed out now
    std::size_t peak = 0;                  ///< the largest value of in_use since the last reset_peak()
    std::size_t cached = 0;                ///< bytes kept for reuse
    std::uint64_t system_allocations = 0;  ///< how often memory was requested from the system
  };

  static Allocator& instance();

  /// A block of at least `bytes` bytes. Error (with the sizes) if the limit would be exceeded or the system has no
  /// memory left.
  void* allocate(std::size_t bytes);
  /// Takes back a block that was allocated with the same `bytes`.
  void release(void* block, std::size_t bytes) noexcept;

  Statistics statistics() const;
  void reset_peak();
  void set_limit(std::size_t bytes);  ///< of bytes in use and cached together; 0 = no limit
  void trim();                        ///< returns the cached blocks to the system

 private:
  Allocator();
  ~Allocator();
  struct State;
  State* state_;
};

}  // namespace vitrail
