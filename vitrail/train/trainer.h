// Training: the loop, its run folder, and resuming.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "vitrail/train/evaluate.h"
#include "vitrail/train/options.h"
#include "vitrail/train/progress.h"

namespace vitrail::train {

// What the caller lends to a run. Everything may be left out.
struct FitHooks {
  std::function<bool()> should_stop;                  // asked after each update: finish, save and return if true
  Progress* progress = nullptr;                       // where the run reports; silent without
  std::function<void(std::int64_t, double)> on_step;  // after each update: its number (from 1) and loss
};

struct FitResult {
  std::filesystem::path folder;
  std::int64_t steps = 0;       // updates, from the beginning of the run
  std::int64_t epochs = 0;      // whole epochs
  bool stopped = false;         // by should_stop, before the end
  double last_loss = 0;         // mean training loss of the last epoch
  Evaluation evaluation;        // the last one; count is 0 without data to evaluate on
  double best_metric = 0;       // of --eval-metric; the training loss without data to evaluate on
  std::int64_t best_epoch = 0;  // counted from 1; 0: none yet
  double seconds = 0;           // of this call
  double wait_share = 0;        // of the training time spent waiting for pictures
};

// Trains as `options` say, in a new run folder options.output/options.experiment:
//
//   config.toml      all options, and what the run was made with
//   metrics.jsonl    a line an update {"step","epoch","loss","lr","images_per_second",…}, a line an evaluation
//                    {"step","epoch","top1","top5","loss"}
//   events.out.…     the same for TensorBoard
//   curves.svg       the same as a picture
//   best/            the model that was best by options.eval_metric (its moving average, if one is kept)
//   last/            the model as it is now, with the optimizer, the moving average and the counters to go on from
//
// last/ is replaced as a whole, so that a process killed at any moment leaves a checkpoint that fits together. What
// happens in a step depends on (seed, step) alone: a resumed run has the same bits as one that was never stopped, for
// the same number of threads.
//
// With options.resume, goes on with that run folder: load its options by resume_options() first.
//
// Error, before anything is written, if options or data make no sense, or the run folder exists; later, in one sentence
// with what to do, if the loss is not finite, memory or disk run out. The last checkpoint is intact then.
FitResult fit(const TrainOptions& options, const FitHooks& hooks = {});

// The options of the run in `folder` (or in the folder of its checkpoint), with `resume` set: to be changed where that
// makes sense (more --epochs) and handed to fit().
TrainOptions resume_options(const std::filesystem::path& folder);

}  // namespace vitrail::train
