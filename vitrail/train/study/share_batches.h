/// \file
/// Evaluations that several ranks make together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/dist/packed.h"

namespace vitrail::train {

/// Who goes through the batches of an evaluation, and who is told how far it is.
struct BatchSharing {
  dist::Communicator* ranks = nullptr;  ///< null: this process alone
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  std::int64_t total = 0;  ///< items of all batches
};

/// What the ranks have made of batches, by their numbers, as bytes.
using JudgedBatches = std::map<std::int64_t, std::string>;
/// What this rank and all others (null: there are none) have made of theirs, on every rank; `broken` likewise.
JudgedBatches gather_judged(dist::Communicator* ranks, JudgedBatches own, std::vector<std::string>* broken = nullptr);
/// Whether this rank judges the batch of a number.
bool is_own_batch(const dist::Communicator* ranks, std::int64_t number);

/// Goes through the batches of a loader, of which each of p ranks takes every p-th. judge(batch, packer) runs the model
/// on one, packs what has come of it, and returns how many items it has; take(unpacker) gets what was packed of every
/// batch, on every rank and in the order of the batches, so that the figures have the bits of one process whoever has
/// judged. Returns the items that were left out as broken, with the reasons.
template <class Batch, class Loader, class Judge, class Take>
std::vector<std::string> share_batches(Loader& loader, const BatchSharing& sharing, Judge&& judge, Take&& take) {
  const bool alone = sharing.ranks == nullptr || sharing.ranks->size() == 1;
  const auto is_own = [&](std::int64_t number) { return is_own_batch(sharing.ranks, number); };
  loader.start_epoch(0, 0, alone ? std::function<bool(std::int64_t)>() : is_own);
  JudgedBatches judged;
  std::int64_t done = 0;
  for (Batch batch; loader.next(batch);) {
    dist::Packer packer;
    done += judge(batch, packer);
    if (alone) {
      dist::Unpacker unpacker(packer.bytes());
      take(unpacker);
    } else {
      judged.emplace(batch.number, packer.bytes());
    }
    if (sharing.progress) {
      sharing.progress(std::min(alone ? done : done * sharing.ranks->size(), sharing.total), sharing.total);
    }
  }
  std::vector<std::string> broken = loader.broken();
  if (!alone) {
    for (const auto& [number, bytes] : gather_judged(sharing.ranks, std::move(judged), &broken)) {
      dist::Unpacker unpacker(bytes);
      take(unpacker);
    }
  }
  return broken;
}

/// The mean of the losses of batches, each weighted by its items.
struct LossMean {
  double sum = 0;
  std::int64_t items = 0;
  std::vector<std::string> broken = {};  ///< items that were left out, with the reasons

  void add(std::pair<double, std::int64_t> loss) {
    sum += loss.first * static_cast<double>(loss.second);
    items += loss.second;
  }
  double mean() const { return sum / static_cast<double>(items); }
};
/// share_batches() for the mean of what loss(batch) says of each: its loss, and how many items it has.
template <class Batch, class Loader, class Loss>
LossMean share_losses(Loader& loader, const BatchSharing& sharing, Loss&& loss) {
  LossMean result;
  const auto judge = [&](const Batch& batch, dist::Packer& packer) {
    const std::pair<double, std::int64_t> own = loss(batch);
    packer.put(own.first);
    packer.put(own.second);
    return own.second;
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const auto of_batch = unpacker.get<double>();
    result.add({of_batch, unpacker.get<std::int64_t>()});
  };
  result.broken = share_batches<Batch>(loader, sharing, judge, take);
  return result;
}

}  // namespace vitrail::train
