#include <algorithm>
#include <barrier>
#include <cmath>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/norm.h"

namespace vitrail::test {
namespace {

using ops::batch_norm;

void expect_golden_batch_norm(DType dtype, double tolerance) {
  for_each_case("batch_norm", [&](const Case& one) {
    const bool training = one.numbers("training").front() != 0;
    const std::vector<float> momentum_eps = one["momentum_eps"].values();
    const Tensor mean = one["mean_before"].clone();
    const Tensor variance = one["variance_before"].clone();
    expect_golden(one, {"x"}, {"weight", "bias"}, dtype, tolerance, [&](const Operands& in) {
      return batch_norm(in.at("x"), in.at("weight"), in.at("bias"), mean, variance, training, momentum_eps[0],
                        momentum_eps[1]);
    });
    expect_close(mean, one["mean_after"], tolerance, "running mean");
    expect_close(variance, one["variance_after"], tolerance, "running variance");
  });
}

TEST(BatchNorm, GivesPyTorchsValuesAndGradients) { expect_golden_batch_norm(DType::f32, 2e-5); }
TEST(BatchNorm, GivesThemInBf16) { expect_golden_batch_norm(DType::bf16, 2e-2); }

TEST(BatchNorm, HasTheGradientsOfFiniteDifferences) {
  const Tensor mean = random_tensor({5}, 4);
  const Tensor variance = Tensor::full({5}, 1.5);
  for (const bool training : {true, false}) {
    const auto norm = [&](const std::vector<Tensor>& in) {
      return batch_norm(in[0], in[1], in[2], mean.clone(), variance.clone(), training, 0.1F, 1e-5F);
    };
    check_gradients(norm, {random_tensor({3, 5, 4, 3}, 1), random_tensor({5}, 2), random_tensor({5}, 3)}, 5e-3);
  }
}

// What comes out and the gradients of all four operands.
std::vector<Tensor> values_and_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                                         std::vector<Tensor> inputs, Tensor dy = {}) {
  for (Tensor& input : inputs) {
    input = input.clone();
    autograd::require_grad(input);
  }
  autograd::Tape tape;
  const Tensor y = function(inputs);
  tape.backward(y, ops::cast(dy.defined() ? dy : random_tensor(y.shape(), 77), y.dtype()));
  std::vector<Tensor> result = {y.detach()};
  for (const Tensor& input : inputs) {
    result.push_back(autograd::grad(input));
  }
  return result;
}

TEST(BatchNorm, TakesResidualAndReluAlong) {
  // More runs of pixels than one, and channels that fill no vector. All can be said in bf16 too.
  const auto exact = [](const Shape& shape, std::uint64_t seed) {
    return ops::cast(ops::cast(random_tensor(shape, seed), DType::bf16), DType::f32);
  };
  const std::vector<Tensor> inputs = {exact({3, 70, 17, 9}, 1), exact({3, 70, 17, 9}, 2), exact({70}, 3),
                                      exact({70}, 4)};
  const Tensor mean = random_tensor({70}, 5);
  const Tensor variance = Tensor::full({70}, 1.5);
  for (const bool training : {true, false}) {
    for (const bool relu : {true, false}) {
      for (const bool with_residual : {true, false}) {
        const auto activation = relu ? ops::Activation::relu : ops::Activation::identity;
        const auto norm = [&](const std::vector<Tensor>& in, ops::Activation last, const Tensor& residual) {
          return batch_norm(in[0], in[2], in[3], mean.clone(), variance.clone(), training, 0.1F, 1e-5F, last, residual);
        };
        const auto at_once = [&](const std::vector<Tensor>& in) {
          return norm(in, activation, with_residual ? in[1] : Tensor());
        };
        const auto in_steps = [&](const std::vector<Tensor>& in) {
          const Tensor y = norm(in, ops::Activation::identity, {});
          return ops::activate(with_residual ? y + in[1] : y, activation);
        };
        const std::vector<Tensor> result = values_and_gradients(at_once, inputs);
        const std::vector<Tensor> expected = values_and_gradients(in_steps, inputs);
        const std::vector<Tensor> low = values_and_gradients(
            at_once, {ops::cast(inputs[0], DType::bf16), ops::cast(inputs[1], DType::bf16), inputs[2], inputs[3]});
        for (std::size_t i = 0; i < result.size(); ++i) {
          const std::string what =
              fmt::format("{} of training {}, ReLU {}, residual {}", i, training, relu, with_residual);
          ASSERT_EQ(result[i].defined(), expected[i].defined()) << what;
          if (result[i].defined()) {
            expect_close(result[i], expected[i], 2e-6, what);
            expect_close(ops::cast(low[i], DType::f32), result[i], 1e-2, what + " in bf16");
          }
        }
      }
    }
  }
}

// Three ranks with parts of a batch have the values and the gradients of one that has it whole
// (torch.nn.SyncBatchNorm).
TEST(BatchNorm, TakesItsStatisticsOverProcesses) {
  const Shape shape{6, 9, 5, 4};
  const std::vector<Tensor> inputs = {random_tensor(shape, 1) + 3.0F, random_tensor(shape, 2), random_tensor({9}, 3),
                                      random_tensor({9}, 4)};
  const Tensor dy = random_tensor(shape, 5);
  Tensor mean = random_tensor({9}, 6);
  Tensor variance = Tensor::full({9}, 1.5);
  const auto norm = [](const std::vector<Tensor>& in, const Tensor& m, const Tensor& v,
                       const kernels::BatchSum* batch) {
    return batch_norm(in[0], in[2], in[3], m, v, true, 0.1F, 1e-5F, ops::Activation::relu, in[1], batch);
  };
  const Tensor mean_before = mean.clone();
  const Tensor variance_before = variance.clone();
  const std::vector<Tensor> whole =
      values_and_gradients([&](const auto& in) { return norm(in, mean, variance, nullptr); }, inputs, dy);
  constexpr std::int64_t ranks = 3;
  std::vector<std::vector<Tensor>> parts(ranks);
  std::vector<std::vector<double>> numbers_of(ranks);
  std::barrier barrier(ranks);
  const auto work = [&](std::int64_t rank) {
    const std::int64_t begin = rank * (rank + 1) / 2;  // of 1, 2 and 3 images
    const auto part = [&](const Tensor& x) { return x.narrow(0, begin, rank + 1).contiguous(); };
    const kernels::BatchSum batch = [&](std::span<double> numbers) {
      numbers_of[static_cast<std::size_t>(rank)].assign(numbers.begin(), numbers.end());
      barrier.arrive_and_wait();
      std::ranges::fill(numbers, 0.0);
      for (const std::vector<double>& one : numbers_of) {
        std::ranges::transform(numbers, one, numbers.begin(), std::plus<>());
      }
      barrier.arrive_and_wait();
    };
    const Tensor m = mean_before.clone();
    const Tensor v = variance_before.clone();
    auto& result = parts[static_cast<std::size_t>(rank)];
    result = values_and_gradients([&](const auto& in) { return norm(in, m, v, &batch); },
                                  {part(inputs[0]), part(inputs[1]), inputs[2], inputs[3]}, part(dy));
    for (const std::size_t i : {0U, 1U, 2U}) {
      expect_close(result[i], part(whole[i]), 2e-6, fmt::format("{} of rank {}", i, rank));
    }
    expect_close(m, mean, 1e-6, "running mean");
    expect_close(v, variance, 1e-6, "running variance");
  };
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(work, rank);
  }
  std::ranges::for_each(threads, &std::thread::join);
  for (const std::size_t i : {3U, 4U}) {
    expect_close(parts[0][i] + parts[1][i] + parts[2][i], whole[i], 2e-5, fmt::format("parameter {}", i));
  }
}

TEST(BatchNorm, LeavesAGradientAloneThatOthersHold) {
  const auto gradients = [](bool held, bool residual_wanted) {
    Tensor x = random_tensor({2, 5, 4, 3}, 1);
    Tensor residual = random_tensor(x.shape(), 2);
    autograd::require_grad(x);
    if (residual_wanted) {
      autograd::require_grad(residual);
    }
    autograd::Tape tape;
    const Tensor y = batch_norm(x, {}, {}, {}, {}, true, 0.1F, 1e-5F, ops::Activation::relu, residual);
    if (held) {
      const Tensor seed = random_tensor(y.shape(), 3);
      tape.backward(y, seed);
      expect_close(seed, random_tensor(y.shape(), 3), 0, "the seed");
    } else {
      tape.backward(y, random_tensor(y.shape(), 3));
    }
    return std::pair(autograd::grad(x), autograd::grad(residual));
  };
  const auto [dx, dresidual] = gradients(false, true);
  const auto [held_dx, held_dresidual] = gradients(true, true);
  expect_close(held_dx, dx, 0);
  expect_close(held_dresidual, dresidual, 0);
  for (const bool held : {true, false}) {
    const auto [alone, none] = gradients(held, false);
    expect_close(alone, dx, 0);
    EXPECT_FALSE(none.defined());
  }
}

TEST(BatchNorm, AddsXToItself) {
  check_gradients(
      [](const std::vector<Tensor>& in) {
        return batch_norm(in[0], {}, {}, {}, {}, true, 0.1F, 1e-5F, ops::Activation::identity, in[0]);
      },
      {random_tensor({3, 5, 4, 3}, 1)}, 5e-3);
}

TEST(BatchNorm, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Tensor x = random_tensor({4, 70, 33, 17}, 1);
  const auto with_threads = [&](int count) {
    const int before = kernels::threads();
    kernels::set_threads(count);
    auto result = values_and_gradients(
        [](const std::vector<Tensor>& in) {
          return batch_norm(in[0], {}, {}, {}, {}, true, 0.1F, 1e-5F, ops::Activation::relu);
        },
        {x});
    kernels::set_threads(before);
    return result;
  };
  const std::vector<Tensor> one = with_threads(1);
  const std::vector<Tensor> three = with_threads(3);
  expect_close(three[0], one[0], 0);
  expect_close(three[1], one[1], 0);
}

TEST(BatchNorm, KeepsWhatIsFarFromZeroApart) {  // variances of values around 1000 in runs and in all
  Tensor x = random_tensor({4, 3, 16, 16}, 1);
  for (float& value : x.span<float>()) {
    value = 1000 + value / 8;
  }
  const Tensor y = batch_norm(x, {}, {}, {}, {}, true, 0.1F, 1e-8F);
  double squares = 0;
  for (const float value : y.values()) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(squares / static_cast<double>(y.numel()), 1, 2e-3);
}

TEST(BatchNorm, LetsNanThroughTheRelu) {
  const AllowNonFinite allow;
  Tensor x = random_tensor({1, 1, 4, 4}, 1);
  x.data<float>()[5] = NAN;
  const Tensor y =
      batch_norm(x, {}, {}, Tensor::zeros({1}), Tensor::full({1}, 1), false, 0.1F, 1e-5F, ops::Activation::relu);
  EXPECT_TRUE(std::isnan(y.values()[5]));
}

TEST(BatchNorm, WorksWithoutRunningStatisticsInTraining) {
  const Tensor y = batch_norm(random_tensor({8, 3, 2, 2}, 1), {}, {}, {}, {}, true, 0.1F, 1e-5F);
  float sum = 0;
  for (const float value : y.values()) {
    sum += value;
  }
  EXPECT_NEAR(sum, 0, 1e-3);
}

TEST(BatchNorm, SaysWhatDoesNotFit) {
  const Tensor x = random_tensor({1, 3}, 1);
  EXPECT_THROW(batch_norm(x, {}, {}, {}, {}, true, 0.1F, 1e-5F), Error) << "one value a channel has no variance";
  EXPECT_THROW(batch_norm(x, {}, {}, {}, {}, false, 0.1F, 1e-5F), Error) << "no statistics";
  EXPECT_THROW(batch_norm(random_tensor({4, 3}), Tensor::zeros({4}), {}, {}, {}, true, 0.1F, 1e-5F), Error);
  const Tensor rows = random_tensor({4, 3});
  EXPECT_THROW(batch_norm(rows, {}, {}, {}, {}, true, 0.1F, 1e-5F, ops::Activation::gelu), Error);
  EXPECT_THROW(batch_norm(rows, {}, {}, {}, {}, true, 0.1F, 1e-5F, ops::Activation::relu, Tensor::zeros({4, 1})),
               Error);
}

}  // namespace
}  // namespace vitrail::test
