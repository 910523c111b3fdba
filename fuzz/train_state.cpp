// Any bytes as the train-state.safetensors of a checkpoint: an Error, or a state.
#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/checkpoint.h"

namespace {

struct NoNetwork final : vitrail::nn::Network {
  std::int64_t depth() const override { return 0; }
  std::int64_t layer_of(const std::string&) const override { return 0; }
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_head(const std::string&) const override { return false; }
};

}  // namespace

FUZZ_TARGET(train_state)(const std::uint8_t* data, std::size_t size) {
  using namespace vitrail;
  static const Folder folder("train-state");
  const MemoryLimit limit;
  folder.write("train-state.safetensors", text_of(data, size));
  try {
    const train::TrainState state = train::load_train_state(folder.path(), NoNetwork());
    require(state.counters.step >= 0 && state.counters.batch <= state.counters.batches_per_epoch);
    train::with_prefix(state.tensors, train::task_prefix);
  } catch (const Error&) {
  }
  return 0;
}
