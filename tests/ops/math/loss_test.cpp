#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::test {
namespace {

// Runs loss(x) on the case's x in `dtype` and compares the loss (f32 always) and the gradient of x.
void expect_loss(const Case& one, DType dtype, double tolerance, const std::function<Tensor(const Tensor&)>& loss) {
  SCOPED_TRACE(one.name());
  Tensor x = as(one["x"], dtype);
  autograd::require_grad(x);
  autograd::Tape tape;
  const Tensor y = loss(x);
  EXPECT_EQ(name_of(y.dtype()), "f32");
  EXPECT_NEAR(y.item(), one["y"].item(), 2e-6 * std::max(1.0F, std::abs(one["y"].item())));
  tape.backward(y, one["dy"]);
  EXPECT_EQ(name_of(autograd::grad(x).dtype()), name_of(dtype));
  // A gradient of zeros but for rounding has no relative error.
  const std::vector<float> expected = one["dx"].values();
  const std::vector<float> actual = autograd::grad(x).values();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
  }
}

TEST(CrossEntropy, AgreesWithPyTorchForLabelsAndForSoftTargets) {
  const io::Safetensors file = golden("ops/loss.safetensors");
  for (const char* classes : {"1", "2", "10", "37"}) {
    for (const auto& [text, smoothing] : {std::pair{"0.0", 0.0F}, std::pair{"0.1", 0.1F}}) {
      const std::string suffix = std::string(classes) + "." + text;
      for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-6}, std::pair{DType::bf16, 1e-3}}) {
        const Case hard(file, "hard." + suffix);
        expect_loss(hard, dtype, tolerance,
                    [&, s = smoothing](const Tensor& x) { return ops::cross_entropy(x, hard["labels"], s); });
        const Case soft(file, "soft." + suffix);
        expect_loss(soft, dtype, tolerance,
                    [&, s = smoothing](const Tensor& x) { return ops::soft_cross_entropy(x, soft["soft"], s); });
      }
    }
  }
}

TEST(CrossEntropy, LeavesOutIgnoredRows) {
  for (const auto& [text, smoothing] : {std::pair{"0.0", 0.0F}, std::pair{"0.2", 0.2F}}) {
    const Case one(golden("ops/loss.safetensors"), std::string("ignored.") + text);
    expect_loss(one, DType::f32, 1e-6,
                [&, s = smoothing](const Tensor& x) { return ops::cross_entropy(x, one["labels"], s); });
  }
}

TEST(CrossEntropy, OfLargeLogitsDoesNotOverflow) {
  const Case one(golden("ops/loss.safetensors"), "large");
  expect_loss(one, DType::f32, 1e-6, [&](const Tensor& x) { return ops::cross_entropy(x, one["labels"]); });
}

TEST(CrossEntropy, NamesALabelOutsideTheClasses) {
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 4, 7}, {3});
  try {
    ops::cross_entropy(random_tensor({3, 5}), labels);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cross_entropy: the label 7 of row 2 lies outside 0 … 4");
  }
}

TEST(CrossEntropy, RejectsTargetsOfAnotherShapeOrType) {
  EXPECT_THROW(ops::cross_entropy(random_tensor({3, 5}), Tensor::zeros({2}, DType::i64)), Error);
  EXPECT_THROW(ops::cross_entropy(random_tensor({3, 5}), Tensor::zeros({3})), Error);
  EXPECT_THROW(ops::soft_cross_entropy(random_tensor({3, 5}), Tensor::zeros({3, 4})), Error);
  EXPECT_THROW(ops::cross_entropy(random_tensor({3}), Tensor::zeros({3}, DType::i64)), Error);
}

TEST(CrossEntropy, HasTheGradientOfFiniteDifferences) {
  const Tensor labels = Tensor::from(std::vector<std::int64_t>{0, 20, 7}, {3});
  check_gradients([&](const std::vector<Tensor>& in) { return ops::cross_entropy(in[0], labels, 0.1F); },
                  {random_tensor({3, 21})});
}

TEST(BinaryCrossEntropy, AgreesWithPyTorch) {
  const Case one(golden("ops/loss.safetensors"), "bce");
  const auto loss = [&](const Tensor& x) { return ops::binary_cross_entropy_with_logits(x, one["targets"]); };
  expect_loss(one, DType::f32, 1e-6, loss);
  expect_loss(one, DType::bf16, 1e-3, loss);
}

TEST(BinaryCrossEntropy, HasTheGradientOfFiniteDifferences) {
  const auto loss = [](const std::vector<Tensor>& in) { return ops::binary_cross_entropy_with_logits(in[0], in[1]); };
  check_gradients(loss, {random_tensor({3, 7}, 1), random_tensor({3, 7}, 2)});
}

TEST(MeanSquaredError, AgreesWithPyTorch) {
  const Case one(golden("ops/loss.safetensors"), "mse");
  expect_golden(one, {"x", "target"}, {}, DType::f32, 2e-6,
                [](const Operands& o) { return ops::mse_loss(o.at("x"), o.at("target")); });
}

TEST(MeanSquaredError, RejectsShapesThatDiffer) {
  EXPECT_THROW(ops::mse_loss(random_tensor({3, 4}), random_tensor({4, 3})), Error);
}

}  // namespace
}  // namespace vitrail::test
