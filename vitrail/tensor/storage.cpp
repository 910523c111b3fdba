#include "vitrail/tensor/storage.h"

#include <utility>

#include "vitrail/tensor/allocator.h"

namespace vitrail {

Storage::Storage(std::size_t bytes)
    : data_(static_cast<std::byte*>(Allocator::instance().allocate(bytes))), bytes_(bytes) {}

Storage::Storage(const void* data, std::size_t bytes, std::shared_ptr<const void> owner)
    : data_(static_cast<std::byte*>(const_cast<void*>(data))), bytes_(bytes), owner_(std::move(owner)) {}

Storage::~Storage() {
  if (owner_ == nullptr) {
    Allocator::instance().release(data_, bytes_);
  }
}

}  // namespace vitrail
