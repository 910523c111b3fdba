/// \file
/// Decoded images, kept from one epoch to the next.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

/// Decoded images that are kept for the next epoch. An image is kept if all images would fit if they were of its size,
/// so that either (nearly) all of a data set is kept or nothing of it. Several threads may use it at once.
class ImageCache {
 public:
  /// Keeps at most `memory` bytes. The data set must outlive the cache.
  ImageCache(const Dataset& dataset, std::size_t memory)
      : dataset_(dataset),
        largest_(memory / static_cast<std::size_t>(std::max(dataset.size(), std::int64_t{1}))),
        slots_(largest_ > 0 ? static_cast<std::size_t>(dataset.size()) : 0) {}
  ~ImageCache() {
    for (std::atomic<const io::Image*>& slot : slots_) {
      delete slot.load();
    }
  }
  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

  /// Calls use(image) with image `index`, decoded now or earlier.
  template <class Use>
  void with(std::int64_t index, Use use) {
    std::atomic<const io::Image*>* slot = slots_.empty() ? nullptr : &slots_[static_cast<std::size_t>(index)];
    if (const io::Image* kept = slot != nullptr ? slot->load(std::memory_order_acquire) : nullptr) {
      return use(*kept);
    }
    io::Image image = dataset_.image(index);
    use(std::as_const(image));
    if (slot != nullptr && sizeof(io::Image) + image.pixels.size() <= largest_) {
      auto kept = std::make_unique<const io::Image>(std::move(image));
      const io::Image* empty = nullptr;
      if (slot->compare_exchange_strong(empty, kept.get(), std::memory_order_release, std::memory_order_relaxed)) {
        kept.release();
      }
    }
  }

 private:
  const Dataset& dataset_;
  std::size_t largest_;
  std::vector<std::atomic<const io::Image*>> slots_;
};

}  // namespace vitrail::data
