// What the trainer owes any task: weights of batches by their units, calls in order, state kept through a stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One number w.
struct OneNumber : nn::Network {
  OneNumber() : w(nn::Scope(parameters).parameter("w", {1}, nn::Init::constant(2))) {}
  std::int64_t depth() const override { return 0; }
  std::int64_t layer_of(const std::string&) const override { return 0; }
  bool no_weight_decay(const std::string&) const override { return true; }
  bool is_head(const std::string&) const override { return true; }
  Tensor w;
};

struct Targets {
  std::vector<float> y;
  std::int64_t number = 0;
};

struct TargetSamples : data::Samples<Targets> {
  std::string name(std::int64_t index) const override { return std::to_string(index); }
  Targets begin(const data::BatchPlan& plan) const override {
    return {std::vector<float>(plan.picks.size()), plan.number};
  }
  void fill(Targets& batch, const data::BatchPlan& plan, std::int64_t i) const override {
    const std::int64_t index = plan.picks[static_cast<std::size_t>(i)].index;
    batch.y[static_cast<std::size_t>(i)] = static_cast<float>(index * index);
  }
  void finish(Targets&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}
};

// Batches of one, three and two items.
std::vector<std::vector<data::Pick>> uneven_batches(std::int64_t) {
  return {{{0, 0}}, {{1, 0}, {2, 0}, {3, 0}}, {{4, 0}, {5, 0}}};
}

struct OneNumberOptions : TaskOptions {
  bool uneven = true;
  bool evaluated = false;
  std::string kind() const override { return "one-number"; }
  std::unique_ptr<TaskOptions> clone() const override { return std::make_unique<OneNumberOptions>(*this); }
  void describe(OptionList& list) override {
    list.group("data");
    list.add("uneven", uneven, "", "batches of one, three and two items, instead of one of all six").settled();
    list.add("evaluated", evaluated, "", "has a figure");
    add_batch_options(list, *this, "items");
    add_optimizer_options(list, *this);
    add_schedule_options(list, *this, "items");
    add_average_options(list, *this);
    add_run_options(list, *this, {"distance", "loss"});
  }
  std::unique_ptr<Task> make(const fs::path& checkpoint) const override;
};

// w learns the mean of the targets: loss = mean (w - y)².
class OneNumberTask : public Task {
 public:
  OneNumberTask(const OneNumberOptions& options, const fs::path& checkpoint)
      : options_(options),
        batches_(std::make_shared<TargetSamples>(),
                 options.uneven ? data::EpochPlan(uneven_batches) : data::plan_batches({.size = 6, .batch_size = 6}),
                 {.workers = 1, .most_ahead = 2}) {
    if (!checkpoint.empty()) {
      load_parameters(network_, checkpoint);
    }
  }
  nn::Network& network() override { return network_; }
  data::Batches& batches() override { return batches_; }
  std::optional<Drawn> next() override {
    if (!batches_.next(batch_)) {
      return std::nullopt;
    }
    return Drawn{batch_.number, std::ssize(batch_.y)};
  }
  Tensor loss(nn::Pass&) override {
    const Tensor y = Tensor::from(batch_.y, {std::ssize(batch_.y)});
    return ops::mse_loss(ops::expand(network_.w, y.shape()), y);
  }
  std::string units() const override { return "items"; }
  std::vector<FigureKind> figures() const override {
    return options_.evaluated ? std::vector<FigureKind>{{.name = "distance", .label = "distance"}}
                              : std::vector<FigureKind>();
  }
  Figures evaluate(const Work&) override { return {{"distance", std::abs(network_.w.item() - 55.0 / 6)}}; }
  void updated(std::int64_t step) override { trace_ = trace_ * 0.5F + network_.w.detach() * static_cast<float>(step); }
  io::NamedTensors state() const override { return {{"trace", trace_}}; }
  void load_state(const io::NamedTensors& state) override { trace_ = state.at(0).second.clone(); }
  void save(const fs::path& folder) const override { save_parameters(network_, folder); }
  std::vector<std::string> draw(const fs::path& run) const override {
    io::write_png(run / "drawn.png", io::Image(1, 1));
    return {"drawn"};
  }
  std::string name() const override { return "one-number"; }

 private:
  OneNumberOptions options_;
  OneNumber network_;
  data::Prefetch<Targets> batches_;
  Targets batch_;
  Tensor trace_ = Tensor::zeros({1});
};

std::unique_ptr<Task> OneNumberOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<OneNumberTask>(*this, checkpoint);
}

OneNumberOptions one_number(const test::TemporaryFolder& folder, const std::string& name) {
  OneNumberOptions options;
  options.output = folder.path().string();
  options.experiment = name;
  options.optimizer.opt = "sgd";
  options.optimizer.momentum = 0;
  options.weight_decay = 0;
  options.lr = 0.1;
  options.schedule.sched = "none";
  options.epochs = 3;
  options.threads = 1;
  return options;
}

float learned(const fs::path& run) { return io::Safetensors::open(run / "last/model.safetensors").get("w").item(); }

TEST(Accumulation, WeighsBatchesByTheirUnits) {
  const test::TemporaryFolder folder;
  OneNumberOptions options = one_number(folder, "uneven");
  options.grad_accum_steps = 3;
  fit(options);
  options = one_number(folder, "whole");
  options.uneven = false;
  fit(options);
  EXPECT_NEAR(learned(folder / "uneven"), learned(folder / "whole"), 1e-5);
  const History uneven = read_history(folder / "uneven/metrics.jsonl");
  const History whole = read_history(folder / "whole/metrics.jsonl");
  ASSERT_EQ(uneven.steps.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(uneven.steps[i].units, 6);
    EXPECT_NEAR(uneven.steps[i].loss, whole.steps[i].loss, 1e-4);
  }
  // Clipping sees the gradient of the whole too.
  options = one_number(folder, "clipped");
  options.grad_accum_steps = 3;
  options.clip_grad = 1;
  fit(options);
  EXPECT_NEAR(*read_history(folder / "clipped/metrics.jsonl").steps[0].grad_norm, 2 * (55.0 / 6 - 2), 1e-4);
}

TEST(AnyTask, KeepsItsOwnStateThroughAStop) {
  const test::TemporaryFolder folder;
  fit(one_number(folder, "straight"));
  std::int64_t seen = 0;
  FitHooks hooks;
  hooks.on_step = [&](std::int64_t step, double) { seen = step; };
  hooks.should_stop = [&] { return seen >= 4; };
  EXPECT_TRUE(fit(one_number(folder, "stopped"), hooks).stopped);
  OneNumberOptions more;
  resume(folder / "stopped", more);
  fit(more);
  for (const char* name : {"w", "task.trace"}) {
    const bool own = std::string_view(name).starts_with("task.");
    const char* file = own ? "last/train-state.safetensors" : "last/model.safetensors";
    EXPECT_EQ(io::Safetensors::open(folder / "straight" / file).get(name).values(),
              io::Safetensors::open(folder / "stopped" / file).get(name).values());
  }
  EXPECT_TRUE(fs::exists(folder / "stopped/drawn.png"));
}

TEST(AnyTask, IsJudgedByItsOwnFigures) {
  const test::TemporaryFolder folder;
  OneNumberOptions options = one_number(folder, "evaluated");
  options.evaluated = true;
  const FitResult result = fit(options);
  EXPECT_EQ(result.best_epoch, 3);
  EXPECT_EQ(result.best_metric, result.figure("distance"));
  EXPECT_EQ(read_record_kind(folder / "evaluated/config.toml")->figures.front().name, "distance");
  EXPECT_EQ(read_record_kind(folder / "evaluated/config.toml")->units, "items");
  options.experiment = "unknown";
  options.eval_metric = "top1";
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("--eval-metric must be one of distance, loss, not 'top1'"));
  OneNumberOptions other = test::options_in<OneNumberOptions>(folder / "evaluated/config.toml");
  EXPECT_TRUE(other.evaluated);
  EXPECT_THAT(error_of([&] { test::options_in<ClassifyOptions>(folder / "evaluated/config.toml"); }),
              HasSubstr("'task' is 'one-number', but 'classify' was expected"));
}

TEST(AnyTask, GoesOnOnlyWithWhatMayChange) {
  const test::TemporaryFolder folder;
  fit(one_number(folder, "run"));
  OneNumberOptions options;
  resume(folder / "run", options);
  options.epochs = 4;
  EXPECT_EQ(fit(options).epochs, 4);
  options.uneven = false;
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("has --uneven true and cannot go on with false"));
}

}  // namespace
}  // namespace vitrail::train
