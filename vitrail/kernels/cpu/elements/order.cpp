#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "vitrail/kernels/choice.h"
#include "vitrail/kernels/cpu/elements/beyond.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {
namespace {

// An element as a number without a sign, in whose order elements are.
template <class Key>
struct Entry {
  Key key;
  std::int64_t index;
};

// The key of a number: those of negative ones lie below, those of NaN above all others.
std::uint32_t key_of(float value) {
  if (std::isnan(value)) {
    return std::numeric_limits<std::uint32_t>::max();
  }
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // -0 becomes 0
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}
std::uint32_t key_of(bf16 value) { return key_of(static_cast<float>(value)); }
std::uint64_t key_of(std::int64_t value) { return static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63); }
template <class T>
requires(std::is_integral_v<T> && sizeof(T) <= 4) std::uint32_t key_of(T value) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value) + (std::int64_t{1} << 31));
}
template <class T>
using KeyOf = decltype(key_of(T{}));

// Sorts entries by their keys, byte by byte from the lowest one; equal ones stay in order.
template <class Key>
void radix_sort(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& spare) {
  spare.resize(entries.size());
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += 8) {
    const auto digit = [shift](const Entry<Key>& entry) {
      return static_cast<std::size_t>((entry.key >> shift) & 255U);
    };
    std::array<std::size_t, 257> begins{};
    for (const Entry<Key>& entry : entries) {
      ++begins[digit(entry) + 1];
    }
    if (begins[digit(entries.front()) + 1] == entries.size()) {
      continue;  // all alike
    }
    for (std::size_t i = 1; i < begins.size(); ++i) {
      begins[i] += begins[i - 1];
    }
    for (const Entry<Key>& entry : entries) {
      spare[begins[digit(entry)]++] = entry;
    }
    entries.swap(spare);
  }
}

// Orders rows one after the other, in memory of its own.
template <class T>
class RowOrder {
 public:
  using Key = KeyOf<T>;
  RowOrder(std::int64_t size, std::int64_t k, bool descending)
      : size_(size), k_(k), flip_(descending ? ~Key{0} : Key{0}) {}

  // Writes where the first k elements of a row are, whose elements lie `stride` from each other, as the places do.
  void operator()(const T* row, std::int64_t stride, std::int64_t* indices) {
    if (k_ <= few_best && few_share * k_ <= size_) {
      find_best(row, stride);
    } else {
      sort_all(row, stride);
    }
    for (std::int64_t i = 0; i < k_; ++i) {
      indices[i * stride] = entries_[static_cast<std::size_t>(i)].index;
    }
  }

 private:
  static constexpr std::int64_t few_best = 256;    // are held sorted while the row is gone through,
  static constexpr std::int64_t few_share = 8;     // if it has so many times as many elements
  static constexpr std::int64_t short_row = 1024;  // is sorted by comparing

  Key key(const T* row, std::int64_t stride, std::int64_t i) const {
    return static_cast<Key>(key_of(row[i * stride]) ^ flip_);
  }

  void find_best(const T* row, std::int64_t stride) {
    const auto most = static_cast<std::size_t>(k_);
    entries_.clear();
    for (std::int64_t i = 0; i < size_; ++i) {
      if (entries_.size() == most) {
        i = next_candidate(row, stride, i);
        if (i == size_) {
          break;
        }
      }
      const Key own = key(row, stride, i);
      if (entries_.size() == most && own >= entries_.back().key) {
        continue;
      }
      const auto place = std::ranges::upper_bound(entries_, own, {}, &Entry<Key>::key);
      entries_.insert(place, {own, i});
      entries_.resize(std::min(entries_.size(), most));
    }
  }

  // The first element from i on that may come before the last of the best, or the row's end.
  std::int64_t next_candidate(const T* row, std::int64_t stride, std::int64_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      if (stride == 1) {
        return first_beyond(row, i, size_, row[entries_.back().index], flip_ != 0);
      }
    }
    return i;
  }

  void sort_all(const T* row, std::int64_t stride) {
    entries_.resize(static_cast<std::size_t>(size_));
    for (std::int64_t i = 0; i < size_; ++i) {
      entries_[static_cast<std::size_t>(i)] = {key(row, stride, i), i};
    }
    if (size_ > short_row) {
      radix_sort(entries_, spare_);
    } else {
      std::ranges::stable_sort(entries_, {}, &Entry<Key>::key);
    }
  }

  std::int64_t size_;
  std::int64_t k_;
  Key flip_;  // the bits that differ in descending order
  std::vector<Entry<Key>> entries_;
  std::vector<Entry<Key>> spare_;
};

}  // namespace

void order(const OrderedRows& rows, std::int64_t k, bool descending, std::int64_t* indices) {
  if (k == 0) {
    return;
  }
  Profile::traffic(rows.outer * rows.size * rows.inner, rows.dtype, 1);
  visit(rows.dtype, [&]<class T>(T) {
    const T* const x = static_cast<const T*>(rows.x);
    parallel_for(rows.outer * rows.inner, rows_worth_a_thread(rows.size),
                 [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
                   RowOrder<T> order_row(rows.size, k, descending);
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t o = i / rows.inner;
                     const std::int64_t s = i % rows.inner;
                     order_row(x + o * rows.size * rows.inner + s, rows.inner, indices + o * k * rows.inner + s);
                   }
                 });
  });
}

std::vector<std::int64_t> largest(std::span<const float> values, std::int64_t k) {
  const auto size = std::ssize(values);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(k, size)));
  if (!indices.empty()) {
    RowOrder<float>(size, std::ssize(indices), true)(values.data(), 1, indices.data());
  }
  return indices;
}

}  // namespace vitrail::kernels
