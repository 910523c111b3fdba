#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/norm.h"

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
}

}  // namespace
}  // namespace vitrail::test
