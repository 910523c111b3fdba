/// \file
/// Which of many strings begin at a place in a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// A set of strings, each with a number. A step by one byte is one look into a hash table.
class ByteTrie {
 public:
  /// Adds `key`, which must not be empty; a later value of the same key replaces the earlier one. Returns whether the
  /// key is new.
  bool insert(std::string_view key, std::uint32_t value);
  bool empty() const { return values_.size() == 1; }

  /// Calls `use(length, value)` for each key with which `text` begins, shorter ones first.
  template <class Use>
  void for_each_prefix(std::string_view text, const Use& use) const {
    std::uint32_t node = 0;
    for (std::size_t length = 1; length <= text.size(); ++length) {
      node = child(node, static_cast<unsigned char>(text[length - 1]));
      if (node == 0) {
        return;
      }
      if (values_[node] != none) {
        use(length, values_[node]);
      }
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Edge {
    std::uint64_t key = 0;  // the node above, the byte, and that the place is taken
    std::uint32_t node = 0;
  };
  static std::uint64_t key_of(std::uint32_t node, unsigned char byte) {
    return std::uint64_t{node} << 9 | std::uint64_t{byte} << 1 | 1U;
  }
  std::size_t place_of(std::uint64_t key) const {
    return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ULL >> shift_);
  }
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    const std::uint64_t key = key_of(node, byte);
    for (std::size_t place = place_of(key);; place = (place + 1) & (edges_.size() - 1)) {
      if (edges_[place].key == key || edges_[place].key == 0) {
        return edges_[place].node;
      }
    }
  }
  void put(std::uint64_t key, std::uint32_t node);
  void grow();

  std::vector<std::uint32_t> values_ = {none};  // of each node; 0 is the root
  std::vector<Edge> edges_ = std::vector<Edge>(64);
  int shift_ = 64 - 6;
};

}  // namespace vitrail::text
