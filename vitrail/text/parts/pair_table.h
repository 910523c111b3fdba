/// \file
/// The merges of a BPE model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vitrail::text {

/// A map of pairs of tokens to what they are joined to. Open addressing: it is asked for every pair of every text.
class PairTable {
 public:
  struct Merge {
    std::uint32_t rank;
    std::uint32_t joined;
  };
  /// Adds a merge; one of the same pair is replaced.
  void put(std::uint32_t left, std::uint32_t right, Merge merge) {
    if ((count_ + 1) * 2 > entries_.size()) {
      const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
      --shift_;
      for (const Entry& entry : old) {
        if (entry.key != 0) {
          entries_[place_of(entry.key)] = entry;
        }
      }
    }
    Entry& entry = entries_[place_of(key_of(left, right))];
    count_ += entry.key == 0 ? 1 : 0;
    entry = {key_of(left, right), merge};
  }
  /// The merge of a pair, or nullptr.
  const Merge* find(std::uint32_t left, std::uint32_t right) const {
    const Entry& entry = entries_[place_of(key_of(left, right))];
    return entry.key == 0 ? nullptr : &entry.merge;
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Merge merge{};
  };
  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return (std::uint64_t{left} << 32 | right) + 1;
  }
  std::size_t place_of(std::uint64_t key) const {
    auto place = static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ULL >> shift_);
    while (entries_[place].key != key && entries_[place].key != 0) {
      place = (place + 1) & (entries_.size() - 1);
    }
    return place;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(64);
  std::size_t count_ = 0;
  int shift_ = 64 - 6;
};

}  // namespace vitrail::text
