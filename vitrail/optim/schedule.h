/// \file
/// Learning rate schedules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::optim {

/// A schedule, and which of its options it goes by.
struct ScheduleKind {
  std::string_view name;
  bool cyclic = false;          ///< those of cycles and of the cool-down
  bool warms_up = false;        ///< warmup_epochs
  bool from_warmup_lr = false;  ///< warmup_lr
  bool to_min_lr = false;       ///< min_lr
};
/// The names that ScheduleOptions::sched may have: all, or those of the schedules with a property.
std::vector<std::string> schedule_names(bool ScheduleKind::*property = nullptr);

/// The arguments of timm's create_scheduler_v2 (flags `--sched`, `--epochs`, `--warmup-epochs` …). Lengths are in
/// epochs.
struct ScheduleOptions {
  /// cosine (Loshchilov & Hutter 2017), tanh, poly, step, multistep, constant (after the warm-up), none (constant,
  /// without warm-up), warmup_cosine (a linear warm-up from warmup_lr to lr within the epochs, and half a cosine over
  /// what is left of them, as in the code of MAE and MoCo v3), dino (the same, but the last update of the warm-up has
  /// the full rate already: DINO's cosine_scheduler), warmup_linear (the same warm-up, and a straight line to min_lr:
  /// airbench94's), or noam (Vaswani et al. 2017, section 5.3): with s - 1 updates or
  /// epochs done and a warm-up of w, lr · min(s / w, √(w / s)). That is the paper's rate for lr = (dim · w)^-0.5.
  std::string sched = "cosine";
  double lr = 0;
  std::int64_t epochs = 300;
  double warmup_epochs = 0;  ///< the rate grows linearly from warmup_lr
  double warmup_lr = 1e-5;
  bool warmup_prefix = false;  ///< the schedule starts after the warm-up instead of together with it
  double min_lr = 0;
  std::int64_t cooldown_epochs = 0;  ///< additional epochs at min_lr, for cosine, tanh and poly
  double decay_rate = 0.1;           ///< factor of step and multistep; exponent of poly
  double decay_epochs = 90;          ///< step: epochs between two decays
  std::vector<std::int64_t> decay_milestones = {90, 180,
                                                270};  ///< multistep, ascending: one at m takes effect in epoch m - 1
  double k_decay = 1;                                  ///< cosine and poly: k-decay's k (Zhang & Li 2020)
  double cycle_mul = 1;                                ///< cosine, tanh, poly: factor on the length of each further
                                                       ///< cycle
  double cycle_decay = 0.1;                            ///< cosine, tanh, poly: factor on the height of each further
                                                       ///< cycle
  std::int64_t cycle_limit = 1;                        ///< number of cycles; afterwards the rate is min_lr
  bool on_updates = false;             ///< the rate follows the schedule at every update instead of once an epoch
  std::int64_t updates_per_epoch = 0;  ///< optimizer updates per epoch; needed if on_updates
};

/// Half a cosine from `from` to `to`, at the share 0 … 1 of its length: DINO's cosine_scheduler without warm-up.
double cosine_between(double from, double to, double share);

/// A learning rate schedule with timm's values. It is a function of time alone: a resumed run needs no state.
class Schedule {
 public:
  explicit Schedule(ScheduleOptions options);  ///< Error for an unknown name or impossible lengths

  /// The learning rate of an update during `epoch` (counted from 0) that `update` others precede in the whole run.
  double lr(std::int64_t epoch, std::int64_t update) const {
    return at(static_cast<double>(options_.on_updates ? update : epoch));
  }
  /// The number of epochs to train in all: the cycles, the warm-up if it is a prefix, and the cool-down.
  std::int64_t epochs() const;

 private:
  double at(double t) const;
  double decayed(double t) const;
  double cyclic(double t) const;
  double warmed_up(double t) const;

  ScheduleOptions options_;  ///< lengths in the unit of time: epochs or updates
  double length_ = 0;        ///< of the first cycle, in that unit
};

}  // namespace vitrail::optim
