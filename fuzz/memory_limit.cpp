#include "memory_limit.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
constexpr std::size_t most = std::size_t{16} << 20;
bool limited = false;  // inputs are tried one after another on one thread
}  // namespace

MemoryLimit::MemoryLimit() { limited = true; }
MemoryLimit::~MemoryLimit() { limited = false; }

// Every form that the default ones of the other forms would mix with these: what one takes, another gives back.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return !limited || bytes <= most ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
}
void* operator new(std::size_t bytes) {
  void* block = operator new(bytes, std::nothrow);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  return block;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { std::free(block); }
