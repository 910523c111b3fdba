#include "vitrail/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

using optim::Schedule;
using optim::ScheduleOptions;

ScheduleOptions of(const std::string& sched) {
  ScheduleOptions options;
  options.sched = sched;
  options.lr = 0.5;
  options.epochs = 12;
  options.warmup_lr = 1e-5;
  return options;
}

// The schedule against the golden values of `name`, one for each epoch or update.
void expect_schedule(const std::string& name, const ScheduleOptions& options) {
  SCOPED_TRACE(name);
  const io::Safetensors file = golden("optim.safetensors");
  const Schedule schedule(options);
  EXPECT_EQ(schedule.epochs(), file.get("schedule." + name + ".epochs").data<std::int64_t>()[0]);
  const std::vector<float> expected = file.get("schedule." + name).values();
  for (std::size_t t = 0; t < expected.size(); ++t) {
    const auto time = static_cast<std::int64_t>(t);
    const double lr = options.on_updates ? schedule.lr(-1, time) : schedule.lr(time, -1);
    EXPECT_NEAR(lr, expected[t], 1e-6 * options.lr) << "at " << t;
  }
}

TEST(Schedule, CosineIsTimms) {
  ScheduleOptions options = of("cosine");
  options.warmup_epochs = 3;
  options.min_lr = 1e-4;
  expect_schedule("cosine", options);
}

TEST(Schedule, CosineAfterTheWarmUpIsTimms) {
  ScheduleOptions options = of("cosine");
  options.warmup_epochs = 3;
  options.warmup_prefix = true;
  options.cooldown_epochs = 2;
  expect_schedule("cosine_prefix", options);
}

TEST(Schedule, CosineByUpdatesIsTimms) {
  ScheduleOptions options = of("cosine");
  options.warmup_epochs = 2;
  options.on_updates = true;
  options.updates_per_epoch = 7;
  options.cooldown_epochs = 1;
  options.k_decay = 1.5;
  expect_schedule("cosine_updates", options);
}

TEST(Schedule, CosineInCyclesIsTimms) {
  ScheduleOptions growing = of("cosine");
  growing.cycle_mul = 2;
  growing.cycle_decay = 0.5;
  growing.cycle_limit = 2;
  growing.min_lr = 1e-3;
  expect_schedule("cosine_cycles", growing);
  ScheduleOptions equal = of("cosine");
  equal.cycle_decay = 0.5;
  equal.cycle_limit = 3;
  equal.warmup_epochs = 2;
  equal.warmup_prefix = true;
  expect_schedule("cosine_equal_cycles", equal);
}

TEST(Schedule, TanhIsTimms) {
  ScheduleOptions options = of("tanh");
  options.warmup_epochs = 3;
  options.min_lr = 1e-4;
  expect_schedule("tanh", options);
}

TEST(Schedule, PolyIsTimms) {
  ScheduleOptions options = of("poly");
  options.decay_rate = 0.5;
  options.k_decay = 2;
  options.min_lr = 1e-4;
  options.cooldown_epochs = 1;
  expect_schedule("poly", options);
}

TEST(Schedule, StepIsTimms) {
  ScheduleOptions options = of("step");
  options.decay_epochs = 2.5;
  options.decay_rate = 0.3;
  options.warmup_epochs = 1;
  expect_schedule("step", options);
  options.warmup_prefix = true;
  options.on_updates = true;
  options.updates_per_epoch = 3;
  expect_schedule("step_updates", options);
}

TEST(Schedule, MultistepIsTimms) {
  ScheduleOptions options = of("multistep");
  options.decay_milestones = {4, 9};
  options.decay_rate = 0.2;
  options.warmup_epochs = 2;
  expect_schedule("multistep", options);
}

TEST(Schedule, ConstantIsTimms) {
  ScheduleOptions options = of("constant");
  options.warmup_epochs = 4;
  expect_schedule("constant", options);
}

TEST(Schedule, NoneIsTheRateFromTheFirstUpdate) {
  ScheduleOptions options = of("none");
  options.warmup_epochs = 4;
  const Schedule schedule(options);
  EXPECT_EQ(schedule.lr(0, 0), 0.5);
  EXPECT_EQ(schedule.lr(100, 1000), 0.5);
  EXPECT_EQ(schedule.epochs(), 12);
}

// Vaswani et al. 2017, eq. 3: dim^-0.5 · min(step^-0.5, step · warmup^-1.5), with steps from 1.
TEST(Schedule, NoamIsThePapersRate) {
  constexpr double dim = 512;
  constexpr double warmup = 40;
  ScheduleOptions options = of("noam");
  options.lr = std::pow(dim * warmup, -0.5);
  options.on_updates = true;
  options.updates_per_epoch = 20;
  options.warmup_epochs = 2;
  const Schedule schedule(options);
  for (const std::int64_t step : {1, 7, 39, 40, 41, 100, 4000}) {
    const auto s = static_cast<double>(step);
    const double expected = std::pow(dim, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(warmup, -1.5));
    EXPECT_NEAR(schedule.lr(0, step - 1), expected, 1e-12) << step;
  }
  EXPECT_EQ(schedule.epochs(), 12);
}

// What a kind says of itself is what its rates depend on.
TEST(Schedule, KnowsTheOptionsThatItGoesBy) {
  using optim::ScheduleKind;
  const auto rates = [](const ScheduleOptions& options) {
    const Schedule schedule(options);
    std::vector<double> result;
    for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
      result.push_back(schedule.lr(epoch, -1));
    }
    return result;
  };
  const auto matters = [&](const std::string& sched, const std::function<void(ScheduleOptions&)>& change) {
    ScheduleOptions options = of(sched);
    options.warmup_epochs = 3;
    const std::vector<double> before = rates(options);
    change(options);
    return rates(options) != before;
  };
  const auto has = [](bool ScheduleKind::*property, const std::string& sched) {
    return std::ranges::count(optim::schedule_names(property), sched) == 1;
  };
  EXPECT_EQ(optim::schedule_names().size(), 11U);
  for (const std::string& sched : optim::schedule_names()) {
    EXPECT_EQ(matters(sched, [](ScheduleOptions& o) { o.cycle_limit = 2; }), has(&ScheduleKind::cyclic, sched))
        << sched;
    EXPECT_EQ(matters(sched, [](ScheduleOptions& o) { o.warmup_epochs = 5; }), has(&ScheduleKind::warms_up, sched))
        << sched;
    EXPECT_EQ(matters(sched, [](ScheduleOptions& o) { o.warmup_lr = 0.1; }), has(&ScheduleKind::from_warmup_lr, sched))
        << sched;
    EXPECT_EQ(matters(sched, [](ScheduleOptions& o) { o.min_lr = 0.1; }), has(&ScheduleKind::to_min_lr, sched))
        << sched;
  }
}

TEST(Schedule, RejectsWhatCannotBe) {
  EXPECT_THROW(Schedule(of("cosinus")), Error);
  ScheduleOptions options = of("cosine");
  options.on_updates = true;
  EXPECT_THROW(Schedule{options}, Error);
  options = of("cosine");
  options.epochs = 0;
  EXPECT_THROW(Schedule{options}, Error);
  options = of("multistep");
  options.decay_milestones = {9, 4};
  EXPECT_THROW(Schedule{options}, Error);
}

TEST(Schedule, HalfCosinesAreMocosAndDinos) {
  const io::Safetensors file = golden("self_supervised/losses.safetensors");
  for (const auto& [sched, name] : {std::pair("warmup_cosine", "mocov3.lr"), {"dino", "cosine_scheduler"}}) {
    ScheduleOptions options = of(sched);
    options.warmup_epochs = 3;
    options.warmup_lr = 0;
    options.min_lr = sched == std::string("dino") ? 1e-3 : 0;
    options.on_updates = true;
    options.updates_per_epoch = 7;
    const Schedule schedule(options);
    EXPECT_EQ(schedule.epochs(), 12);
    const std::vector<float> expected = file.get(name).values();
    ASSERT_EQ(expected.size(), 84U);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      EXPECT_NEAR(schedule.lr(-1, static_cast<std::int64_t>(t)), expected[t], 1e-6) << sched << " at " << t;
    }
  }
  const std::vector<float> decay = file.get("cosine_scheduler.decay").values();
  for (std::size_t t = 0; t < decay.size(); ++t) {
    EXPECT_NEAR(optim::cosine_between(0.04, 0.4, static_cast<double>(t) / 84), decay[t], 1e-6);
  }
}

}  // namespace
}  // namespace vitrail::test
