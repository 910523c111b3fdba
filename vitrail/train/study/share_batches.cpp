#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {

JudgedBatches gather_judged(dist::Communicator& ranks, const JudgedBatches& own, std::vector<std::string>& broken) {
  dist::Packer packer;
  packer.put_texts(broken);
  packer.put(static_cast<std::uint64_t>(own.size()));
  for (const auto& [number, bytes] : own) {
    packer.put(number);
    packer.put_text(bytes);
  }
  broken.clear();
  JudgedBatches all;
  for (const std::string& bytes : dist::all_gather(ranks, packer.bytes(), "the end of the evaluation")) {
    dist::Unpacker unpacker(bytes);
    for (std::string& one : unpacker.get_texts()) {
      broken.push_back(std::move(one));
    }
    for (auto left = unpacker.get<std::uint64_t>(); left > 0; --left) {
      const auto number = unpacker.get<std::int64_t>();
      all[number] = unpacker.get_text();
    }
  }
  return all;
}

bool is_own_batch(const dist::Communicator* ranks, std::int64_t number) {
  return ranks == nullptr || number % ranks->size() == ranks->rank();
}

}  // namespace vitrail::train
