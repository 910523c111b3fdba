// Learning rate schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::optim {

// The arguments of timm's create_scheduler_v2 (flags --sched, --epochs, --warmup-epochs …), lengths in epochs.
struct ScheduleOptions {
  // cosine (Loshchilov & Hutter 2017), tanh, poly, step, multistep, constant (after the warm-up), none (no warm-up
  // either).
  std::string sched = "cosine";
  double lr = 0;
  std::int64_t epochs = 300;
  double warmup_epochs = 0;  // the rate grows from warmup_lr linearly
  double warmup_lr = 1e-5;
  bool warmup_prefix = false;  // the schedule begins after the warm-up instead of beneath it
  double min_lr = 0;
  std::int64_t cooldown_epochs = 0;                       // more epochs at min_lr, for cosine, tanh and poly
  double decay_rate = 0.1;                                // factor of step and multistep; exponent of poly
  double decay_epochs = 90;                               // step: between two decays
  std::vector<double> decay_milestones = {90, 180, 270};  // multistep, ascending; one at m takes effect in epoch m - 1
  double k_decay = 1;                                     // cosine, poly: Zhang & Li 2020
  double cycle_mul = 1;                                   // cosine, tanh, poly: each cycle is so much longer
  double cycle_decay = 0.1;                               // … and so much lower
  std::int64_t cycle_limit = 1;                           // cycles before min_lr
  bool on_updates = false;             // follow the schedule at every update instead of once an epoch
  std::int64_t updates_per_epoch = 0;  // optimizer updates; needed if on_updates
};

// A function of time alone: a run that goes on from a checkpoint needs no state. Values are timm's.
class Schedule {
 public:
  explicit Schedule(ScheduleOptions options);  // Error for an unknown name or impossible lengths

  // The learning rate of an update that `update` others came before (in the whole run), during `epoch` (from 0).
  double lr(std::int64_t epoch, std::int64_t update) const {
    return at(static_cast<double>(options_.on_updates ? update : epoch));
  }
  // How many epochs to train in all: with cycles, the warm-up as a prefix and cool-down.
  std::int64_t epochs() const;

 private:
  double at(double t) const;
  double decayed(double t) const;
  double cyclic(double t) const;

  ScheduleOptions options_;  // lengths in the unit of time: epochs or updates
  double length_ = 0;        // of the first cycle, in that unit
};

}  // namespace vitrail::optim
