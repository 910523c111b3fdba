#include "vitrail/train/run/digest.h"

#include <cstring>
#include <fstream>
#include <vector>

#include "vitrail/tensor/random.h"

namespace vitrail::train {

std::uint64_t digest(std::uint64_t state, std::span<const std::byte> bytes) {
  const auto take = [&](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15U;
    state ^= state >> 29;
  };
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof(word); bytes = bytes.subspan(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    take(word);
  }
  word = bytes.size();
  if (!bytes.empty()) {
    std::memcpy(&word, bytes.data(), bytes.size());
  }
  take(word);
  return state;
}

std::uint64_t digest_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20);
  std::uint64_t state = 1;  // from 0, zeros would lead nowhere else
  while (file.read(block.data(), std::ssize(block)), file.gcount() > 0) {
    const auto size = static_cast<std::size_t>(file.gcount());
    state = digest(mix(state, size), std::as_bytes(std::span(block.data(), size)));
  }
  return state;
}

}  // namespace vitrail::train
