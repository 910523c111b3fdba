// Twenty steps of each method from ready-made views give its reference's losses and parameters
// (tools/golden/self_supervised.py).
#include "tests/support/golden.h"
#include "vitrail/train/pretrain/dino.h"
#include "vitrail/train/pretrain/mocov3.h"
#include "vitrail/train/pretrain/simclr.h"
#include "vitrail/train/run/learner.h"

namespace vitrail::train {
namespace {

// What all three have in common; `views` is a file beside the fixtures.
template <class Options>
Options stepped_options(const char* views) {
  Options options;
  options.views = (test::golden_path("self_supervised") / views).string();
  options.model = "vit_tiny_patch16_224";
  options.model_kwargs = R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.batch_size = 4;
  options.epochs = 10;
  options.lr = 1e-3;
  options.drop_path = 0;
  options.optimizer.eps = 1e-3;
  options.workers = 0;
  return options;
}

// MoCo's batch norms over four images multiply what rounding differs between instruction sets, step by step: from the
// twelfth step on the losses differ by up to 5e-3 in builds for fewer instruction sets.
constexpr std::int64_t steps_to_rounding = 10;
constexpr double after_rounding = 2e-2;

// Runs the task from the parameters of `file`, as the trainer does, and compares the losses of each step; `later` is
// the tolerance after the first ten.
std::unique_ptr<Task> expect_steps(const TaskOptions& options, const io::Safetensors& file,
                                   const std::string& losses = "losses", double later = 1e-3) {
  std::unique_ptr<Task> task = options.make({});
  for (const nn::Parameter& parameter : task->network().parameters.all()) {
    parameter.value.copy_from(file.get("start." + parameter.name));
    parameter.value.touch();
  }
  io::NamedTensors state;
  for (const auto& [name, value] : task->state()) {
    const bool momentum = name.starts_with("momentum.");
    state.emplace_back(name, momentum ? file.get("start." + name.substr(9)) : value.clone());
  }
  task->load_state(state);
  const std::int64_t batches = task->batches().batches_per_epoch();
  Learner learner(options, task->network(), batches, DType::f32);
  const std::vector<float> expected = file.get(losses).values();
  EXPECT_EQ(std::ssize(expected), options.epochs * batches);
  std::int64_t step = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    task->batches().start_epoch(epoch);
    while (task->next()) {
      task->updating(step);
      const auto number = static_cast<std::uint64_t>(step);
      const double loss = learner.step([&](nn::Pass& pass) { return task->loss(pass); }, number, step).loss;
      const float wanted = expected[static_cast<std::size_t>(step)];
      EXPECT_NEAR(loss, wanted, (step < steps_to_rounding ? 1e-3 : later) * std::abs(wanted))
          << losses << ", step " << step;
      task->updated(++step);
    }
  }
  return task;
}

void expect_parameters(Task& task, const io::Safetensors& file, double tolerance = 1e-3) {
  for (const nn::Parameter& parameter : task.network().parameters.all()) {
    // The bias of the final norm has no influence where a batch norm follows, and the mean of what is centred is 0.
    const bool rounding = parameter.name == "norm.bias" || parameter.name == "predictor.1.running_mean";
    if (parameter.value.dtype() == DType::f32 && !rounding) {
      test::expect_close(parameter.value, file.get("end." + parameter.name), tolerance, parameter.name);
    }
  }
  for (const auto& [name, value] : task.state()) {
    if (name.starts_with("momentum.") && value.dtype() == DType::f32 && name != "momentum.norm.bias") {
      test::expect_close(value, file.get(name), tolerance, name);
    }
  }
}

TEST(TwentyStepsOfSimclr, GiveLightlysLosses) {
  auto options = stepped_options<PretrainSimclrOptions>("views_two.safetensors");
  options.schedule.sched = "none";
  options.weight_decay = 0.05;
  options.hidden_dim = 20;
  options.projection_dim = 12;
  const io::Safetensors file = test::golden("self_supervised/simclr.safetensors");
  const std::unique_ptr<Task> task = expect_steps(options, file);
  expect_parameters(*task, file);
  options.batch_stats = "view";
  expect_steps(options, file, "losses.view");
}

TEST(TwentyStepsOfMocov3, GiveItsCodesLossesAndParameters) {
  auto options = stepped_options<PretrainMocov3Options>("views_two.safetensors");
  options.warmup_epochs = 2;
  options.moco_mlp_dim = 20;
  options.moco_dim = 12;
  options.moco_m = 0.9;
  const io::Safetensors file = test::golden("self_supervised/mocov3.safetensors");
  const std::unique_ptr<Task> task = expect_steps(options, file, "losses", after_rounding);
  expect_parameters(*task, file, after_rounding);
}

TEST(TwentyStepsOfDino, GiveItsCodesLossesCentreAndParameters) {
  auto options = stepped_options<PretrainDinoOptions>("views_crops.safetensors");
  options.warmup_epochs = 2;
  options.out_dim = 48;
  options.head_hidden_dim = 32;
  options.head_bottleneck_dim = 16;
  options.local_crops_number = 2;
  options.local_crops_size = 8;
  options.momentum_teacher = 0.9;
  options.teacher_temp = 0.07;
  options.warmup_teacher_temp_epochs = 5;
  options.clip_grad = 0.05;
  const io::Safetensors file = test::golden("self_supervised/dino.safetensors");
  const std::unique_ptr<Task> task = expect_steps(options, file);
  expect_parameters(*task, file);
  for (const auto& [name, value] : task->state()) {
    if (name == "center") {
      test::expect_close(value, file.get("center"), 1e-3, name);
    }
  }
}

}  // namespace
}  // namespace vitrail::train
