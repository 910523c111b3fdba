/// \file
/// The updates of a run: which batches one is made of, on this rank and on all, and their loss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// What a rank would like to be done after an update. One that stops stops all; rank 0 says when to save.
struct Wishes {
  bool stop = false;
  bool save = false;
};

/// An update that has been made, the same on all ranks.
struct Update {
  double loss = 0;  ///< the mean over the units of all its batches
  std::int64_t units = 0;
  double lr = 0;
  std::optional<double> gradient_norm;
  std::optional<Wishes> agreed;      ///< what several ranks have agreed on
  std::vector<double> rank_seconds;  ///< how long each of several ranks has worked on its batches
};

/// Makes updates of the batches that a task gives. An update has `group()` batches; its gradient is that of the mean
/// loss over all their units.
///
/// A process by itself goes through them one after the other. Of several ranks, or with --grad-shards, each takes as
/// many of them in a row as the others do. Every batch is then a leaf of a tree along which gradients, running
/// statistics and losses are added, so that the result does not depend on the number of ranks.
class Updates {
 public:
  /// `options` are those of the run, with as many accumulated batches as an epoch has at most. Throws Error if there
  /// are more ranks than batches in an update, or not as many for each.
  Updates(Task& task, Learner& learner, dist::Communicator& ranks, const RunOptions& options);
  ~Updates();
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  std::int64_t group() const;  ///< the batches of an update on all ranks together
  /// Begins an epoch at counters.batch.
  void start_epoch(const Counters& counters);
  /// Makes the next update, and moves the counters on; empty if broken items have left nothing of the epoch. Several
  /// ranks agree on what each wishes to be done after update `step` (counted from 1). Throws Error, with advice, if the
  /// loss is not finite.
  std::optional<Update> next(Counters& counters, const std::function<Wishes(std::int64_t step)>& wishes);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The batches of an update on all of so many ranks: --grad-shards, or --grad-accum-steps on each.
std::int64_t batches_of_update(const RunOptions& options, int ranks);

/// "an update has 15 batches instead of 50: an epoch has no more", where fewer are left of them; or else "".
std::string note_of_update(const RunOptions& options, int ranks, std::int64_t batches);

/// The words of an error of an update, and what may help against it where the batch is too large or too small.
std::string with_remedy(std::string words, std::int64_t batch_size);

/// The updates of an epoch of so many batches, of which the last has what is left.
std::int64_t updates_of_epoch(std::int64_t batches, std::int64_t batches_of_update);

}  // namespace vitrail::train
