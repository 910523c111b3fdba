// A block of memory that tensors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace vitrail {

// Owns its bytes (from the Allocator) or keeps alive whatever owns them (a memory-mapped file).
class Storage {
 public:
  explicit Storage(std::size_t bytes);                                              // uninitialized
  Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner);  // borrowed, not to be written
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool is_borrowed() const { return owner_ != nullptr; }

  // Things worked out from the contents (weights packed for GEMM, a bf16 copy), kept beside them. Whoever changes the
  // contents of a tensor that may have any calls Tensor::touch(), which raises the version; derived data of an older
  // version is stale, and its owner makes it anew.
  std::uint64_t version() const { return version_; }
  void touch() { ++version_; }
  std::shared_ptr<void>& derived() { return derived_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<const void> owner_;
  std::uint64_t version_ = 0;
  std::shared_ptr<void> derived_;
};

}  // namespace vitrail
