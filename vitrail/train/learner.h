// Turns batches into better weights: loss, gradients, clipping, optimizer, schedule, moving average.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/data/loader.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/model.h"
#include "vitrail/train/loss.h"
#include "vitrail/train/options.h"
#include "vitrail/train/teacher.h"

namespace vitrail::train {

// The loss of classes: heads_loss() of the model's heads, or of `forward`'s in their place, and with the teacher's
// logits if there is one. All must outlive the objective.
Objective classification(const TrainOptions& options, const models::ImageModel& net, const Teacher* teacher = nullptr,
                         Forward forward = {});

// Over a model that must outlive it.
class Learner {
 public:
  // `dtype` is that of activations and products; weights stay f32. Without an objective it is classification().
  Learner(const TrainOptions& options, models::ImageModel& net, std::int64_t updates_per_epoch, DType dtype,
          Objective objective = {});
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  std::int64_t epochs() const;           // that the schedule takes, warm-up and cool-down included
  double lr(std::int64_t update) const;  // of the update after `update` others

  // gather() and update() of one batch. Without clipping (LAMB clips by itself) and checkpointing each parameter is
  // updated as soon as its gradient is known, so that never all of them take memory at once, and no packed weights are
  // kept; the results are the same.
  struct Step {
    double loss = 0;
    std::optional<double> gradient_norm;
  };
  Step step(const data::Batch& batch, std::uint64_t number, std::int64_t update);

  // Adds `share` times the gradient of the batch's loss to the parameters' gradients, and returns the loss. Dropout and
  // stochastic depth depend on (seed, number) alone. A loss that is not finite leaves the gradients as they were.
  double gather(const data::Batch& batch, std::uint64_t number, float share = 1);
  // Clips the gathered gradients, updates the weights, then the moving average, and drops the gradients. `update`
  // others came before. The gradients count `scale` times. Returns the gradients' norm before clipping, if they are
  // clipped by norm.
  std::optional<double> update(std::int64_t update, double scale = 1);

  bool has_average() const;
  // While one lives, the model's parameters hold their moving average. Error without one.
  class Averaged {
   public:
    explicit Averaged(Learner& learner);
    ~Averaged();
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

   private:
    Learner& learner_;
  };

  // The optimizer's and the average's tensors. They share the memory that further updates change.
  io::NamedTensors state() const;
  // Goes on from such a state; Error names what is missing or of another shape.
  void load_state(const io::Safetensors& state);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The name of a parameter that holds NaN or infinity, or "".
std::string first_bad_parameter(const models::ImageModel& net);

}  // namespace vitrail::train
