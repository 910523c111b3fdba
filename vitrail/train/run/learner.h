/// \file
/// The update of the weights: gradients, clipping, optimizer, schedule, moving average.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/train/run_options.h"

namespace vitrail::train {

/// The forward pass of a batch, which returns its mean loss, a scalar f32 that a step minimizes.
using Loss = std::function<Tensor(nn::Pass& pass)>;

/// Updates the parameters of a network, which must outlive it.
class Learner {
 public:
  /// `dtype` is the dtype of activations and products; weights are always f32. With --zero, `ranks` share the
  /// optimizer, and must all call update() and state() together.
  Learner(const RunOptions& options, nn::Network& network, std::int64_t updates_per_epoch, DType dtype,
          dist::Communicator* ranks = nullptr);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  std::int64_t epochs() const;           ///< how many the schedule takes, with warm-up and cool-down
  double lr(std::int64_t update) const;  ///< the learning rate of update `update`, counted as for update()

  /// What a user should know of the options before it begins, a line each.
  std::vector<std::string> remarks() const;

  /// The result of step().
  struct Step {
    double loss = 0;
    std::optional<double> gradient_norm;
  };
  /// accumulate() and update() for a single batch. Without clipping, without checkpointing, and unless the optimizer
  /// needs all gradients (LAMB clips by itself), each parameter is updated as soon as its gradient is complete, so that
  /// the gradients never take memory all at once, and no packed weights are kept. The results are the same either way.
  Step step(const Loss& loss, std::uint64_t number, std::int64_t update);

  /// Adds `share` times the gradient of the loss to the gradients of the parameters, and returns the loss. Dropout and
  /// stochastic depth depend on (seed, number) alone. A loss that is not finite leaves the gradients unchanged.
  /// `complete` is handed to Tape::backward(), `batch` to the pass; with it backward goes through any loss, as the
  /// other processes wait for this one there.
  double accumulate(const Loss& loss, std::uint64_t number, float share = 1,
                    const autograd::Tape::Complete& complete = {}, const kernels::BatchSum* batch = nullptr);
  /// Scales the accumulated gradients by `scale`, clips them, updates the weights and then the moving average, and
  /// clears the gradients. `update` is the place in the schedules: the number of the update, counted from 0 as if each
  /// epoch had `updates_per_epoch`. `norm` is that of the accumulated gradients, if it is known already. Returns the
  /// norm of the gradients before clipping if they are clipped by norm.
  std::optional<double> update(std::int64_t update, double scale = 1, std::optional<double> norm = {});
  bool clips_by_norm() const;

  bool has_average() const;
  /// While an object of this class exists, the parameters of the network hold their moving average. The constructor
  /// throws Error if no moving average is kept.
  class Averaged {
   public:
    explicit Averaged(Learner& learner);
    ~Averaged();
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

   private:
    Learner& learner_;
  };

  /// The tensors of the optimizer and of the moving average. They share the memory that later updates change. If
  /// ranks share the optimizer, its tensors are copies, and on all but rank 0 undefined.
  io::NamedTensors state() const;
  /// Restores what state() returned. Throws Error, naming the tensor, if one is missing or of another shape.
  void load_state(const io::Safetensors& state);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Throws AgreedError, naming the parameter and what may help, if one of the network's is not finite after update
/// `step`.
void check_finite_weights(const nn::Network& network, std::int64_t step);

}  // namespace vitrail::train
