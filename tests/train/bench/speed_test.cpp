// What makes training fast, without a clock: no memory from the system in a steady step, weights packed once a step and
// form, no attention probabilities kept, and the same losses however many threads share the work.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/models/model.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/tensor/allocator.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/tasks/loss.h"

namespace vitrail::train {
namespace {

// A small ViT on a batch of its own, trained step by step.
class Training {
 public:
  explicit Training(DType dtype, std::int64_t image = 32, std::int64_t batch = 4)
      : model_(make(image)), learner_(options(), *model_.net, 100, dtype) {
    batch_.x = test::random_tensor({batch, 3, image, image}, 7);
    batch_.labels = Tensor::empty({batch}, DType::i64);
    for (std::int64_t i = 0; i < batch; ++i) {
      batch_.labels.data<std::int64_t>()[i] = i % 10;
    }
  }
  double step() {
    const double value = learner_.step(loss(), static_cast<std::uint64_t>(count_), count_).loss;
    ++count_;
    return value;
  }
  double step_in_two() {
    const double value = learner_.accumulate(loss(), static_cast<std::uint64_t>(count_));

    learner_.update(count_++);
    return value;
  }
  void expect_equal(const Training& other) const {
    for (const nn::Parameter& parameter : model_.net->parameters.all()) {
      test::expect_close(parameter.value, other.model_.net->parameters.at(parameter.name).value, 0, parameter.name);
    }
  }
  // Linear maps and convolutions, each of which packs its weight.
  std::int64_t maps() const {
    std::int64_t count = 0;
    for (const nn::Parameter& parameter : model_.net->parameters.all()) {
      count += parameter.value.rank() >= 2 && parameter.name.ends_with(".weight") ? 1 : 0;
    }
    return count;
  }

 private:
  Loss loss() const {
    return [this](nn::Pass& pass) { return batch_loss(*model_.net, batch_, pass, {.smoothing = 0.1}); };
  }
  static models::Model make(std::int64_t image) {
    models::CreateOptions options;
    options.num_classes = 10;
    options.drop_path_rate = 0.1;
    options.model_kwargs =
        fmt::format(R"({{"img_size": {}, "patch_size": 4, "embed_dim": 64, "depth": 2, "num_heads": 2}})", image);
    return models::create_model("vit_tiny_patch16_224", options);
  }
  static RunOptions options() {
    RunOptions options;
    options.lr = 1e-3;
    options.schedule.sched = "none";
    options.epochs = 1;
    return options;
  }

  models::Model model_;
  Learner learner_;
  data::Batch batch_;
  std::int64_t count_ = 0;
};

TEST(TrainingStep, TakesNoMemoryFromTheSystemOnceItRuns) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Training training(dtype);
    for (int i = 0; i < 3; ++i) {
      training.step();
    }
    const std::uint64_t before = Allocator::instance().statistics().system_allocations;
    for (int i = 0; i < 5; ++i) {
      training.step();
    }
    EXPECT_EQ(Allocator::instance().statistics().system_allocations, before) << name_of(dtype);
  }
}

TEST(TrainingStep, PacksEachWeightOnceForEachForm) {
  Training training(DType::f32);
  training.step();
  const std::uint64_t before = kernels::packings();
  training.step();
  // One form for y = x Wᵀ and one for dx = dy W; the patch embedding's images want no gradient.
  EXPECT_EQ(kernels::packings() - before, static_cast<std::uint64_t>(2 * training.maps() - 1));
}

TEST(TrainingStep, UpdatesInBackwardToTheSameBits) {
  Training at_once(DType::bf16);
  Training apart(DType::bf16);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(at_once.step(), apart.step_in_two());
  }
  apart.expect_equal(at_once);
}

// Neither all gradients nor all packed weights exist at one time.
TEST(TrainingStep, HoldsOneGradientAtATime) {
  const auto peak = [](double (Training::*step)()) {
    Training training(DType::f32, 32, 1);
    const std::size_t before = Allocator::instance().statistics().in_use;
    Allocator::instance().reset_peak();
    (training.*step)();
    (training.*step)();
    return Allocator::instance().statistics().peak - before;
  };
  EXPECT_LT(peak(&Training::step), peak(&Training::step_in_two) / 2);
}

TEST(TrainingStep, KeepsNoAttentionProbabilities) {
  const auto peak = [](std::int64_t image) {
    Training training(DType::bf16, image, 1);
    training.step();
    const std::size_t before = Allocator::instance().statistics().in_use;
    Allocator::instance().reset_peak();
    training.step();
    return Allocator::instance().statistics().peak - before;
  };
  const std::size_t at_577 = peak(96);
  const std::size_t at_2305 = peak(192);
  EXPECT_LT(at_2305, 5 * at_577) << "memory grows with the tokens, not with their square";
  // Probabilities of 2 layers and 2 heads in bf16 would take 4 · 2305² · 2 bytes = 42 MB.
  EXPECT_LT(at_2305, std::size_t{34} << 20);
}

TEST(TrainingStep, GivesTheSameLossesWithAnyNumberOfThreads) {
  const int threads = kernels::threads();
  const auto losses = [](int count, DType dtype) {
    kernels::set_threads(count);
    Training training(dtype);
    std::vector<double> result;
    for (int i = 0; i < 6; ++i) {
      result.push_back(training.step());
    }
    return result;
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::vector<double> one = losses(1, dtype);
    const std::vector<double> two = losses(2, dtype);
    EXPECT_EQ(losses(2, dtype), two) << "to the bit at the same number of threads";
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(one[i], two[i], (dtype == DType::f32 ? 1e-5 : 1e-2) * one[i]) << name_of(dtype) << ", step " << i;
    }
  }
  kernels::set_threads(threads);
}

}  // namespace
}  // namespace vitrail::train
