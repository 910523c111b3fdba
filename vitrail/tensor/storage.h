/// \file
/// A block of memory that tensors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace vitrail {

/// A storage owns its bytes (from the Allocator), or borrows them and keeps their owner alive (for example a
/// memory-mapped file).
class Storage {
 public:
  explicit Storage(std::size_t bytes);                                              ///< uninitialized bytes
  Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner);  ///< borrowed bytes, read-only
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool is_borrowed() const { return owner_ != nullptr; }

  // Data derived from the contents (weights packed for GEMM, a bf16 copy) can be cached beside them in derived(),
  // together with the version() that it was made from. Whoever changes the contents calls Tensor::touch(), which raises
  // the version: derived data of an older version is stale, and whoever cached it makes it anew.

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
