#include "vitrail/text/strings/byte_trie.h"

#include <utility>

namespace vitrail::text {

void ByteTrie::put(std::uint64_t key, std::uint32_t node) {
  std::size_t place = place_of(key);
  while (edges_[place].key != 0) {
    place = (place + 1) & (edges_.size() - 1);
  }
  edges_[place] = {key, node};
}

void ByteTrie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  --shift_;
  for (const Edge& edge : old) {
    if (edge.key != 0) {
      put(edge.key, edge.node);
    }
  }
}

bool ByteTrie::insert(std::string_view key, std::uint32_t value) {
  std::uint32_t node = 0;
  for (const char byte : key) {
    std::uint32_t next = child(node, static_cast<unsigned char>(byte));
    if (next == 0) {
      next = static_cast<std::uint32_t>(values_.size());
      values_.push_back(none);
      if (values_.size() * 2 > edges_.size()) {
        grow();
      }
      put(key_of(node, static_cast<unsigned char>(byte)), next);
    }
    node = next;
  }
  const bool is_new = values_[node] == none;
  values_[node] = value;
  return is_new;
}

}  // namespace vitrail::text
