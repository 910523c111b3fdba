#include "vitrail/ops/products/linear.h"

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/gradients.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::test {
namespace {

using ops::Activation;
using ops::linear;

void expect_golden_linear(DType dtype, double tolerance) {
  for_each_case("linear", [&](const Case& one) {
    const auto activation = static_cast<Activation>(one.numbers("activation").front());
    expect_golden(one, {"x", "residual"}, {"weight", "bias"}, dtype, tolerance, [&](const Operands& in) {
      return linear(in.at("x"), in.at("weight"), in.at("bias"), activation, in.at("residual"));
    });
    const auto optional = [](const Tensor& t, DType d) { return t.defined() ? as(t, d) : Tensor(); };
    expect_close(linear(as(one["x"], dtype), one["weight"], one["bias"], activation, optional(one["residual"], dtype)),
                 one["y"], tolerance, one.name() + ", without a tape");
  });
}

std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Linear, GivesPyTorchsValuesAndGradients) { expect_golden_linear(DType::f32, 1e-5); }
TEST(Linear, GivesThemInBf16) { expect_golden_linear(DType::bf16, 2e-2); }

TEST(Linear, HasTheGradientsOfFiniteDifferences) {
  const auto affine = [](const std::vector<Tensor>& in) {
    return linear(in[0], in[1], in[2], Activation::identity, in[3]);
  };
  check_gradients(affine, {random_tensor({3, 7, 17}, 1), random_tensor({5, 17}, 2), random_tensor({5}, 3),
                           random_tensor({3, 7, 5}, 4)});
  const auto gelu = [](const std::vector<Tensor>& in) { return linear(in[0], in[1], in[2], Activation::gelu, in[3]); };
  check_gradients(gelu, {random_tensor({9, 16}, 1), random_tensor({24, 16}, 2, 0.2F), random_tensor({24}, 3),
                         random_tensor({9, 24}, 4)});
}

TEST(Linear, TakesStridedInputs) {
  const Tensor x = random_tensor({6, 5, 4}, 1);
  const Tensor weight = random_tensor({3, 6}, 2);
  const Tensor view = x.transpose(0, 2);  // [4, 5, 6]
  expect_close(linear(view, weight), linear(view.clone(), weight), 0);
  const Tensor slice = random_tensor({4, 5, 11}, 3).narrow(2, 2, 6);
  expect_close(linear(slice, weight), linear(slice.clone(), weight), 0);
  const Tensor bias = random_tensor({3, 2}, 4).select(1, 0);
  expect_close(linear(view, weight, bias), linear(view, weight, bias.clone()), 0);
}

TEST(Linear, KeepsViewsOfOneStorageApart) {
  const Tensor qkv = random_tensor({12, 8}, 1);
  const Tensor x = random_tensor({5, 8}, 2);
  for (int part = 0; part < 3; ++part) {
    const Tensor weight = qkv.narrow(0, 4 * part, 4);
    expect_close(linear(x, weight), linear(x, weight.clone()), 0);
  }
  const Tensor square = random_tensor({8, 8}, 3);
  expect_close(linear(x, square), linear(x, square.clone()), 0);
  expect_close(linear(x, square.transpose(0, 1)), linear(x, square.transpose(0, 1).clone()), 0);
}

TEST(Linear, PacksAWeightOnceUntilItIsTouched) {
  Tensor weight = random_tensor({32, 16}, 1);
  autograd::require_grad(weight);
  Tensor x = random_tensor({6, 16}, 2);
  autograd::require_grad(x);
  const auto step = [&] {
    const std::uint64_t before = kernels::packings();
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      autograd::Tape tape;
      tape.backward(linear(x, weight), Tensor::full({6, 32}, 1));
    }
    return kernels::packings() - before;
  };
  EXPECT_EQ(step(), 2U) << "once for the product, once for the input's gradient";
  EXPECT_EQ(step(), 0U);
  weight.fill(0.5);
  weight.touch();
  EXPECT_EQ(step(), 2U);
  expect_close(linear(x, weight), linear(x, weight.clone()), 0, "with the new values");
}

TEST(Linear, CanFindAChangeThatWasNotDeclared) {
  const Tensor x = random_tensor({6, 16}, 2);
  const Tensor weight = random_tensor({32, 16}, 1);
  kernels::set_check_touched(true);
  linear(x, weight);
  linear(x, weight);
  weight.fill(0.5);
  EXPECT_THAT(message_of([&] { linear(x, weight); }),
              ::testing::HasSubstr("a weight [16, 32] was changed in place without touch()"));
  weight.touch();
  expect_close(linear(x, weight), linear(x, weight.clone()), 0);
  kernels::set_check_touched(false);
}

TEST(Linear, GivesPackedWeightsBackWhereTheyAreUsedOnce) {
  const Tensor weight = random_tensor({64, 48}, 1);
  const Tensor x = random_tensor({6, 48}, 2);
  const Tensor y = linear(x, weight);  // kept until the weight is touched
  weight.touch();
  const std::size_t before = Allocator::instance().statistics().in_use;
  {
    const kernels::TransientPacking sparing;
    expect_close(linear(x, weight), y, 0);
    EXPECT_LT(Allocator::instance().statistics().in_use, before) << "and the stale form is gone";
  }
  expect_close(linear(x, weight), y, 0);
  EXPECT_EQ(Allocator::instance().statistics().in_use, before);
}

// A recurrence of `uses` products, forward and backward, with the weight changed behind it.
struct Recurrence {
  Tensor weight = random_tensor({16, 16}, 1, 0.3F);
  Tensor state = random_tensor({6, 16}, 2);

  Recurrence() {
    autograd::require_grad(weight);
    autograd::require_grad(state);
  }
  // Returns how many forms were packed.
  std::uint64_t step(int uses, bool sparing) {
    const std::uint64_t before = kernels::packings();
    const kernels::TransientPacking once(sparing);
    autograd::zero_grad(weight);
    autograd::zero_grad(state);
    autograd::Tape tape;
    Tensor x = state;
    for (int i = 0; i < uses; ++i) {
      x = linear(x, weight);
    }
    tape.backward(x, Tensor::full(x.shape(), 1));
    weight.copy_from(weight.detach() + autograd::grad(weight) * -0.01F);
    weight.touch();
    return kernels::packings() - before;
  }
};

TEST(Linear, PacksAWeightOnceThatAStepUsesSeveralTimes) {
  Recurrence sparing;
  Recurrence keeping;
  EXPECT_EQ(sparing.step(5, true), 4U) << "at the first step only the second use tells, forward and backward";
  keeping.step(5, false);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(sparing.step(5, true), 2U) << "one form for y = x Wᵀ, one for dx = dy W";
    EXPECT_EQ(keeping.step(5, false), 2U);
    EXPECT_EQ(sparing.weight.values(), keeping.weight.values());
  }
}

TEST(Linear, GivesThePackedFormsBackOfAWeightThatIsNoLongerUsedSeveralTimes) {
  Recurrence recurrence;
  EXPECT_EQ(recurrence.step(1, true), 2U);
  const std::size_t once = Allocator::instance().statistics().in_use;
  recurrence.step(5, true);
  recurrence.step(5, true);
  EXPECT_GT(Allocator::instance().statistics().in_use, once);
  EXPECT_EQ(recurrence.step(1, true), 2U);
  EXPECT_EQ(recurrence.step(1, true), 2U);
  EXPECT_EQ(Allocator::instance().statistics().in_use, once);
}

TEST(Linear, PacksAWeightThatDoesNotChangeTwiceAtMost) {
  const Tensor weight = random_tensor({32, 16}, 1);
  const Tensor x = random_tensor({6, 16}, 2);
  const std::uint64_t before = kernels::packings();
  for (int step = 0; step < 4; ++step) {
    const kernels::TransientPacking sparing;
    linear(x, weight);
  }
  EXPECT_EQ(kernels::packings() - before, 2U);
}

TEST(Linear, AsksTheSystemForNoMemoryInTheSteadyState) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor weight = random_tensor({96, 64}, 1);
    Tensor bias = random_tensor({96}, 2);
    autograd::require_grad(weight);
    autograd::require_grad(bias);
    Tensor x = as(random_tensor({130, 64}, 3), dtype);
    autograd::require_grad(x);
    const Tensor dy = as(random_tensor({130, 96}, 4), dtype);
    std::uint64_t before = 0;
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        before = Allocator::instance().statistics().system_allocations;
      }
      weight.touch();
      autograd::zero_grad(weight);
      autograd::zero_grad(bias);
      autograd::zero_grad(x);
      autograd::Tape tape;
      tape.backward(linear(x, weight, bias), dy);
    }
    EXPECT_EQ(Allocator::instance().statistics().system_allocations, before) << name_of(dtype);
  }
}

TEST(Linear, GivesTheSameBitsEveryTime) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = as(random_tensor({257, 96}, 1), dtype);
    const Tensor dy = as(random_tensor({257, 65}, 2), dtype);
    Tensor weight = random_tensor({65, 96}, 3);
    autograd::require_grad(weight);
    std::vector<float> first;
    for (int i = 0; i < 5; ++i) {
      autograd::zero_grad(weight);
      autograd::Tape tape;
      tape.backward(linear(x, weight), dy);
      const std::vector<float> now = autograd::grad(weight).values();
      first = first.empty() ? now : first;
      EXPECT_EQ(now, first);
    }
  }
}

TEST(Linear, LetsTheResidualsGradientBeAddedToLater) {
  // The residual's gradient is dy itself, and x is the residual too: x's gradient = dy + dy W.
  Tensor x = random_tensor({4, 6}, 1);
  autograd::require_grad(x);
  const Tensor weight = random_tensor({6, 6}, 2);
  const Tensor dy = random_tensor({4, 6}, 3);
  autograd::Tape tape;
  tape.backward(linear(x, weight, {}, Activation::identity, x), dy);
  Tensor expected = linear(dy, weight.transpose(0, 1).clone(), {}, Activation::identity, dy);
  expect_close(autograd::grad(x), expected, 1e-6);
}

TEST(Linear, TakesNoRowsAndNoFeatures) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor weight = random_tensor({5, 3}, 1);
    Tensor bias = random_tensor({5}, 2);
    autograd::require_grad(weight);
    autograd::require_grad(bias);
    {
      autograd::Tape tape;
      const Tensor y = linear(Tensor::empty({2, 0, 3}, dtype), weight, bias);
      EXPECT_EQ(y.shape(), (Shape{2, 0, 5}));
      tape.backward(y, Tensor::empty({2, 0, 5}, dtype));
    }
    expect_close(autograd::grad(weight), Tensor::zeros({5, 3}), 0);
    expect_close(autograd::grad(bias), Tensor::zeros({5}), 0);
    autograd::zero_grad(bias);
    Tensor none = Tensor::empty({5, 0});
    autograd::require_grad(none);
    autograd::Tape tape;
    const Tensor y = linear(Tensor::empty({4, 0}, dtype), none, bias);
    expect_close(y, bias.expand({4, 5}), 1e-2);
    tape.backward(y, Tensor::full({4, 5}, 1, dtype));
    expect_close(autograd::grad(bias), Tensor::full({5}, 4), 0);
  }
}

TEST(Linear, SaysWhatDoesNotFit) {
  const Tensor weight = random_tensor({384, 128});
  EXPECT_EQ(message_of([&] {
              linear(Tensor::zeros({2, 192}), weight);
            }),
            "linear: x [2, 192] has 192 features, but the weight [384, 128] takes 128");
  EXPECT_EQ(message_of([&] {
              linear(Tensor::zeros({2, 128}), weight, Tensor::zeros({128}));
            }),
            "linear: the bias must be [384] f32, not [128] f32");
  EXPECT_EQ(message_of([&] {
              linear(Tensor::zeros({2, 128}), weight, {}, Activation::identity, Tensor::zeros({2, 128}));
            }),
            "linear: the residual must be [2, 384] f32, not [2, 128] f32");
  EXPECT_EQ(message_of([&] {
              linear(Tensor::zeros({2, 128}, DType::i32), weight);
            }),
            "linear: x must be f32 or bf16, not i32");
}

}  // namespace
}  // namespace vitrail::test
