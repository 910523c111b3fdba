/// \file
/// The state of a run on disk: everything that is needed to resume it as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "vitrail/io/safetensors.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// The position of a run. All randomness follows from the seed and these numbers.
struct Counters {
  std::int64_t step = 0;               ///< updates made
  std::int64_t epoch = 0;              ///< the one being trained, from 0
  std::int64_t batch = 0;              ///< batches of that epoch that are done
  std::int64_t batches_per_epoch = 0;  ///< a resumed run must have as many: its data must be the same
  std::int64_t best_epoch = 0;         ///< the epoch whose model is in best/, from 1; 0: none yet
  double best_metric = 0;              ///< the metric of that model
  std::int64_t metrics_bytes = 0;      ///< length of metrics.jsonl
  std::int64_t threads = 0;            ///< the results are bit for bit the same only for the same number
  double seconds = 0;                  ///< duration of the training so far
};

/// Writes a checkpoint into `folder`, which is replaced as a whole: what Task::save() writes, and
/// train-state.safetensors, which has the tensors of `learner` and of the task's own state, and, as metadata, the
/// counters, a checksum of these tensors and a checksum of the network's weights.
void save_checkpoint(const std::filesystem::path& folder, const Task& task, const nn::Network& network,
                     const Counters& counters, const io::NamedTensors& learner);

/// Where an epoch, number 7, has ended: saves its model as `folder`/0007, and removes those of all but the last `count`
/// epochs; 0: does nothing.
void keep_epoch(const std::filesystem::path& folder, const Task& task, const Counters& counters, std::int64_t count);

/// The contents of a train-state.safetensors.
struct TrainState {
  Counters counters;
  io::Safetensors tensors;
};

/// Reads the training state in `folder`. Throws Error, naming what is wrong, if it is damaged, or if it was not saved
/// together with the weights of `network`, which were read from the same folder.
TrainState load_train_state(const std::filesystem::path& folder, const nn::Network& network);
/// The updates behind the checkpoint `folder`; -1 if it has no training state that can be read.
std::int64_t step_of_checkpoint(const std::filesystem::path& folder);
/// What tells the checkpoint `folder` from any other, its counters and checksums; "" if it has no training state that
/// can be read.
std::string identity_of_checkpoint(const std::filesystem::path& folder);
/// Throws Error if the run `folder` cannot go on from `saved` with so many batches an epoch and epochs in all: it
/// stopped inside an epoch of other batches, or has trained more epochs.
void check_goes_on(const std::filesystem::path& folder, const Counters& saved, std::int64_t batches_per_epoch,
                   std::int64_t epochs);
/// The tensors of a state whose names begin with `prefix`, under their names without it.
io::NamedTensors with_prefix(const io::Safetensors& state, std::string_view prefix);
inline constexpr std::string_view task_prefix = "task.";  ///< prefix of the names of a task's own tensors

/// A 64-bit checksum of the names, shapes and elements of tensors, whatever their order.
std::uint64_t checksum(const io::NamedTensors& tensors);
/// The checksum of the parameters and buffers of a network: equal if their bits are equal.
std::uint64_t weights_checksum(const nn::Network& network);

}  // namespace vitrail::train
