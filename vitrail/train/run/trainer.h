/// \file
/// Training: the training loop, its run folder, and resuming a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "vitrail/dist/communicator.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// Optional hooks of the caller into a run.
struct FitHooks {
  std::function<bool()> should_stop;                  ///< called after each update: if true, the run is saved and ended
  Progress* progress = nullptr;                       ///< where this rank reports; null: it is silent
  dist::Communicator* ranks = nullptr;                ///< the ranks that train together; null: this process is alone
  std::function<void(std::int64_t, double)> on_step;  ///< called after each update with its number (from 1) and loss
  std::function<void()> on_loaded;                    ///< called once nothing is read from options.resume any more
};

struct FitResult {
  std::filesystem::path folder;
  std::int64_t steps = 0;       ///< updates since the beginning of the run
  std::int64_t epochs = 0;      ///< whole epochs
  bool stopped = false;         ///< whether should_stop ended the run early
  double last_loss = 0;         ///< mean training loss of the last epoch
  Figures figures;              ///< of the last evaluation; empty without data to evaluate on
  double best_metric = 0;       ///< value of --eval-metric; without data to evaluate on, the training loss
  std::int64_t best_epoch = 0;  ///< counted from 1; 0: none yet
  double seconds = 0;           ///< duration of this call
  double wait_share = 0;        ///< share of the training time that was spent waiting for batches

  double figure(std::string_view name) const { return train::figure(figures, name); }  ///< NaN if there is none
};

/// Trains as `options` say, in a new run folder options.output/options.experiment:
///
/// ```text
/// config.toml      the kind of task, all options, and what the run was made with
/// metrics.jsonl    a line for each update, {"step","epoch","loss","lr","images_per_second",…},
///                  and for each evaluation, {"step","epoch","top1",…}
/// events.out.…     these numbers for TensorBoard
/// curves.svg       these numbers as charts
/// best/            the network that is best by options.eval_metric (or its moving average, if one is kept),
///                  as Task::save() writes it
/// last/            the network as it is now, with optimizer, moving average and counters, to resume from
/// ```
///
/// last/ is replaced as a whole, so that a process killed at any moment leaves a consistent checkpoint. What happens in
/// a step depends on (seed, step) alone: a resumed run has the same bits as one that was never stopped, for the same
/// number of threads.
///
/// Of several ranks, each calls fit() with the same options and trains its part of each update (updates.h). Rank 0
/// alone writes and reports.
///
/// With options.resume, continues that run; its options must have been taken over by resume() first.
///
/// Throws Error before anything is written if options or data are not valid or the run folder exists. Later it throws
/// Error, in one sentence with advice, if the loss is not finite, or memory or disk space run out; the last checkpoint
/// is intact then.
FitResult fit(const TaskOptions& options, const FitHooks& hooks = {});

}  // namespace vitrail::train
