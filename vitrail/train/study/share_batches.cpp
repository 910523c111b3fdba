#include "vitrail/train/study/share_batches.h"

#include <iterator>

namespace vitrail::train {

JudgedBatches gather_judged(dist::Communicator* ranks, JudgedBatches own, std::vector<std::string>* broken) {
  if (ranks == nullptr || ranks->size() == 1) {
    return own;
  }
  dist::Packer packer;
  packer.put_texts(broken == nullptr ? std::vector<std::string>() : *broken);
  packer.put(static_cast<std::uint64_t>(own.size()));
  for (const auto& [number, bytes] : own) {
    packer.put(number);
    packer.put_text(bytes);
  }
  own.clear();
  std::vector<std::string> all_broken;
  JudgedBatches all;
  for (const std::string& bytes : dist::all_gather(*ranks, packer.bytes(), "the end of the evaluation")) {
    dist::Unpacker unpacker(bytes);
    std::ranges::move(unpacker.get_texts(), std::back_inserter(all_broken));
    for (auto left = unpacker.get<std::uint64_t>(); left > 0; --left) {
      const auto number = unpacker.get<std::int64_t>();
      all[number] = unpacker.get_text();
    }
  }
  if (broken != nullptr) {
    *broken = std::move(all_broken);
  }
  return all;
}

bool is_own_batch(const dist::Communicator* ranks, std::int64_t number) {
  return ranks == nullptr || number % ranks->size() == ranks->rank();
}

}  // namespace vitrail::train
