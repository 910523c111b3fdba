// A run's state on disk: all that is needed to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>

#include "vitrail/io/safetensors.h"
#include "vitrail/models/model.h"

namespace vitrail::train {

// Where a run is. All randomness follows from the seed and these numbers.
struct Counters {
  std::int64_t step = 0;               // updates made
  std::int64_t epoch = 0;              // the one being trained, from 0
  std::int64_t batch = 0;              // batches of it that are done
  std::int64_t batches_per_epoch = 0;  // to see that the data are the same
  std::int64_t best_epoch = 0;         // whose model is in best/, from 1; 0: none yet
  double best_metric = 0;              // of that model
  std::int64_t metrics_bytes = 0;      // length of metrics.jsonl
  std::int64_t threads = 0;            // results are the same to the bit for the same number only
  double seconds = 0;                  // of training so far
};

// The folder of a checkpoint: the model as config.json and model.safetensors, which timm reads too, and beside them
// train-state.safetensors with the tensors of `state` and, as its metadata, the counters and checksums of both files'
// tensors. Written into `folder`, which is replaced as a whole.
void save_checkpoint(const std::filesystem::path& folder, const models::Model& model, const Counters& counters,
                     const io::NamedTensors& state);

struct TrainState {
  Counters counters;
  io::Safetensors tensors;
};

// The training state in `folder`. Error, naming what is wrong, if it is damaged or was not saved with the weights that
// `model`, read from the same folder, has.
TrainState load_train_state(const std::filesystem::path& folder, const models::Model& model);

// A 64-bit checksum of names, shapes and elements, in any order.
std::uint64_t checksum(const io::NamedTensors& tensors);
// The same of a model's parameters and buffers: equal for equal bits.
std::uint64_t weights_checksum(const models::Model& model);

}  // namespace vitrail::train
