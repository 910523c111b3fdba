#include "vitrail/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/tensor/error.h"

namespace vitrail::optim {
namespace {

constexpr std::array<ScheduleKind, 11> kinds = {{
    {.name = "cosine", .cyclic = true, .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
    {.name = "tanh", .cyclic = true, .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
    {.name = "poly", .cyclic = true, .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
    {.name = "step", .warms_up = true, .from_warmup_lr = true},
    {.name = "multistep", .warms_up = true, .from_warmup_lr = true},
    {.name = "constant", .warms_up = true, .from_warmup_lr = true},
    {.name = "none"},
    {.name = "noam", .warms_up = true},
    {.name = "warmup_cosine", .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
    {.name = "warmup_linear", .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
    {.name = "dino", .warms_up = true, .from_warmup_lr = true, .to_min_lr = true},
}};

bool is_cyclic(std::string_view sched) {
  return std::ranges::any_of(kinds, [&](const ScheduleKind& kind) { return kind.name == sched && kind.cyclic; });
}

// The length of `cycles` cycles, of which the first has length 1 and each further one is `mul` times as long.
double cycles_length(double mul, double cycles) { return mul == 1 ? cycles : (std::pow(mul, cycles) - 1) / (mul - 1); }

}  // namespace

std::vector<std::string> schedule_names(bool ScheduleKind::*property) {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : kinds) {
    if (property == nullptr || kind.*property) {
      names.emplace_back(kind.name);
    }
  }
  return names;
}

double cosine_between(double from, double to, double share) {
  return to + 0.5 * (from - to) * (1 + std::cos(std::numbers::pi * share));
}

Schedule::Schedule(ScheduleOptions options) : options_(std::move(options)) {
  ScheduleOptions& o = options_;
  check(std::ranges::find(kinds, o.sched, &ScheduleKind::name) != kinds.end(),
        "unknown schedule '{}': expected one of {}", o.sched, fmt::join(schedule_names(), ", "));
  check(o.epochs > 0, "a schedule needs at least one epoch, not {}", o.epochs);
  check(o.warmup_epochs >= 0 && o.cooldown_epochs >= 0, "warm-up and cool-down cannot last {} and {} epochs",
        o.warmup_epochs, o.cooldown_epochs);
  check(o.sched != "step" || o.decay_epochs > 0, "the step schedule cannot decay every {} epochs", o.decay_epochs);
  check(o.cycle_mul > 0 && o.cycle_limit > 0, "a schedule needs cycles: cycle_mul = {} and cycle_limit = {} give none",
        o.cycle_mul, o.cycle_limit);
  check(std::ranges::is_sorted(o.decay_milestones), "the decay milestones must ascend");
  check(!o.on_updates || o.updates_per_epoch > 0, "a schedule by updates needs to know how many an epoch has");
  length_ = static_cast<double>(o.epochs);
  if (o.on_updates) {
    const auto updates = static_cast<double>(o.updates_per_epoch);
    for (std::int64_t& milestone : o.decay_milestones) {
      milestone *= o.updates_per_epoch;
    }
    length_ *= updates;
    o.warmup_epochs *= updates;
    o.decay_epochs *= updates;
  }
}

double Schedule::at(double t) const {
  const ScheduleOptions& o = options_;
  if (o.sched == "none") {
    return o.lr;
  }
  if (o.sched == "noam") {
    const double warmup = std::max(o.warmup_epochs, 1.0);
    return o.lr * std::min((t + 1) / warmup, std::sqrt(warmup / (t + 1)));
  }
  if (o.sched == "warmup_cosine" || o.sched == "warmup_linear" || o.sched == "dino") {
    return warmed_up(t);
  }
  if (t < o.warmup_epochs) {
    // timm's tanh schedule warms up to the value that it has at that time, the others warm up to the full rate.
    const double goal = o.sched == "tanh" && !o.warmup_prefix ? cyclic(o.warmup_epochs) : o.lr;
    return o.warmup_lr + t * (goal - o.warmup_lr) / o.warmup_epochs;
  }
  if (o.warmup_prefix) {
    t -= o.warmup_epochs;
  }
  return is_cyclic(o.sched) ? cyclic(t) : decayed(t);
}

double Schedule::warmed_up(double t) const {
  const ScheduleOptions& o = options_;
  if (t < o.warmup_epochs) {
    const double steps = o.sched == "dino" ? o.warmup_epochs - 1 : o.warmup_epochs;
    return steps <= 0 ? o.warmup_lr : o.warmup_lr + (o.lr - o.warmup_lr) * std::min(t / steps, 1.0);
  }
  if (t >= length_) {
    return o.min_lr;
  }
  const double share = (t - o.warmup_epochs) / (length_ - o.warmup_epochs);
  return o.sched == "warmup_linear" ? o.lr + (o.min_lr - o.lr) * share : cosine_between(o.lr, o.min_lr, share);
}

double Schedule::decayed(double t) const {
  const ScheduleOptions& o = options_;
  if (o.sched == "step") {
    return o.lr * std::pow(o.decay_rate, std::floor(t / o.decay_epochs));
  }
  if (o.sched == "multistep") {
    const auto passed =
        std::ranges::upper_bound(o.decay_milestones, t + 1, {},
                                 [](std::int64_t milestone) { return static_cast<double>(milestone); }) -
        o.decay_milestones.begin();
    return o.lr * std::pow(o.decay_rate, static_cast<double>(passed));
  }
  return o.lr;  // constant
}

double Schedule::cyclic(double t) const {
  const ScheduleOptions& o = options_;
  const double mul = o.cycle_mul;
  const double cycle =
      mul == 1 ? std::floor(t / length_) : std::floor(std::log(1 - t / length_ * (1 - mul)) / std::log(mul));
  if (!(cycle < static_cast<double>(o.cycle_limit))) {  // NaN: shrinking cycles have ended
    return o.min_lr;
  }
  const double done = t - cycles_length(mul, cycle) * length_;
  const double length = std::pow(mul, cycle) * length_;
  const double range = o.lr * std::pow(o.cycle_decay, cycle) - o.min_lr;
  if (o.sched == "tanh") {
    const double share = done / length;
    return o.min_lr + 0.5 * range * (1 - std::tanh(-7 * (1 - share) + 3 * share));
  }
  const double share = std::pow(done, o.k_decay) / std::pow(length, o.k_decay);
  if (o.sched == "poly") {
    return o.min_lr + range * std::pow(1 - share, o.decay_rate);
  }
  return o.min_lr + 0.5 * range * (1 + std::cos(std::numbers::pi * share));
}

std::int64_t Schedule::epochs() const {
  const ScheduleOptions& o = options_;
  const double unit = o.on_updates ? static_cast<double>(o.updates_per_epoch) : 1;
  double total = length_;
  if (is_cyclic(o.sched)) {
    total = std::floor(length_ * cycles_length(o.cycle_mul, static_cast<double>(o.cycle_limit)));
    total += static_cast<double>(o.cooldown_epochs) * unit;
  }
  if (o.warmup_prefix) {
    total += o.warmup_epochs;
  }
  return static_cast<std::int64_t>(std::floor(total / unit));
}

}  // namespace vitrail::optim
