#include "vitrail/autograd/tape.h"

#include <limits>
#include <thread>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::test {
namespace {

using autograd::grad;
using autograd::Gradient;
using autograd::NoGrad;
using autograd::record;
using autograd::require_grad;
using autograd::requires_grad;
using autograd::Tape;
using testing::Each;
using testing::ElementsAre;

Tensor leaf(const std::vector<float>& values) {
  Tensor x = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  require_grad(x);
  return x;
}

// x · factor, written with the tape alone: the ops lie above it.
Tensor scaled(const Tensor& x, float factor) {
  const auto times = [](const Tensor& t, float by) {
    Tensor result = Tensor::empty_like(t);
    for (std::int64_t i = 0; i < t.numel(); ++i) {
      result.data<float>()[i] = by * t.data<float>()[i];
    }
    return result;
  };
  // Keeps its input, as most ops do.
  return record("scaled", times(x, factor), {&x},
                [times, factor, x = x.detach(), dx = Gradient(x)](const Tensor& dy) { dx.add(times(dy, factor)); });
}

// a + b, both of which get the same dy.
Tensor sum(const Tensor& a, const Tensor& b) {
  Tensor result = a.clone();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    result.data<float>()[i] += b.data<float>()[i];
  }
  return record("sum", result, {&a, &b}, [da = Gradient(a), db = Gradient(b)](const Tensor& dy) {
    da.add(dy);
    db.add(dy);
  });
}

TEST(Tape, TellsOfALeafWhenItsGradientIsComplete) {
  const Tensor a = leaf({1});
  const Tensor b = leaf({2});
  Tape tape;
  const Tensor y = sum(scaled(a, 2), scaled(sum(scaled(b, 3), a), 5));  // 2 a + 5 (3 b + a)
  std::vector<std::pair<const autograd::Slot*, float>> told;
  tape.backward(y, {}, [&](autograd::Slot& slot) {
    told.emplace_back(&slot, slot.grad.item());
    slot.grad = Tensor();
  });
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told,
              testing::UnorderedElementsAre(testing::Pair(a.slot().get(), 7.0F), testing::Pair(b.slot().get(), 15.0F)));
  EXPECT_FALSE(grad(a).defined());
}

TEST(Tape, ForgetsTheUsesOfALeafThatWereNeverPlayed) {
  const Tensor a = leaf({1});
  {
    Tape abandoned;
    scaled(a, 2);
  }
  Tape tape;
  int told = 0;
  tape.backward(scaled(a, 2), {}, [&](autograd::Slot&) { ++told; });
  EXPECT_EQ(told, 1);
}

TEST(Tape, KeepsWhatIsCheapToRebuildAsTheWayToDoIt) {
  const Tensor a = leaf({1});
  Tape tape;
  const Tensor y = scaled(a, 2);
  int rebuilt = 0;
  autograd::set_rebuild(y, [&] {
    ++rebuilt;
    return Tensor::full({1}, 42);
  });
  EXPECT_EQ(autograd::SavedTensor(y).get().item(), 42);
  EXPECT_EQ(rebuilt, 1);
  EXPECT_EQ(autograd::SavedTensor(a).get().item(), 1);
}

TEST(Tape, AddsUpTheGradientOfALeafOverItsUsesAndCalls) {
  const Tensor x = leaf({1, 2});
  const Tensor seed = Tensor::from(std::vector<float>{1, 10}, {2});
  for (int call = 1; call <= 2; ++call) {
    Tape tape;
    tape.backward(sum(scaled(x, 3), scaled(x, 4)), seed);
    EXPECT_THAT(grad(x).values(), ElementsAre(7 * call, 70 * call));
  }
  EXPECT_THAT(seed.values(), ElementsAre(1, 10));
  autograd::zero_grad(x);
  EXPECT_FALSE(grad(x).defined());
}

TEST(Tape, StartsFromOneForASingleNumberOnly) {
  const Tensor x = leaf({5});
  Tape tape;
  tape.backward(scaled(x, 3));
  EXPECT_THAT(grad(x).values(), ElementsAre(3));
  const Tensor y = leaf({1, 2});
  EXPECT_EQ(error_of([&] { tape.backward(scaled(y, 3)); }),
            "backward() without a seed needs a single number, not the shape [2]");
}

TEST(Tape, RecordsNothingThatNobodyWants) {
  const Tensor x = leaf({1});
  const Tensor plain = Tensor::full({1}, 2);
  EXPECT_FALSE(requires_grad(scaled(x, 2)));  // no tape
  Tape tape;
  EXPECT_FALSE(requires_grad(scaled(plain, 2)));  // no gradient wanted
  {
    const NoGrad no_grad;
    EXPECT_EQ(Tape::current(), nullptr);
    EXPECT_FALSE(requires_grad(scaled(x, 2)));
  }
  EXPECT_EQ(Tape::current(), &tape);
  EXPECT_TRUE(requires_grad(scaled(x, 2)));
  std::thread([&] { EXPECT_FALSE(requires_grad(scaled(x, 2))); }).join();  // another thread's tape is another's
  EXPECT_EQ(error_of([&] { tape.backward(scaled(plain, 2)); }),
            "backward(): the output depends on nothing whose gradient is wanted");
}

TEST(Tape, LeavesFrozenLeavesAlone) {
  Tensor x = leaf({1, 2});
  const Tensor handle = x;
  require_grad(x, false);
  EXPECT_FALSE(requires_grad(handle));
  const Tensor y = leaf({3, 4});
  Tape tape;
  tape.backward(sum(handle, y), Tensor::full({2}, 1));
  EXPECT_FALSE(grad(x).defined());
  EXPECT_THAT(grad(y).values(), Each(1.0F));
  Tensor indices = Tensor::zeros({2}, DType::i64);
  EXPECT_EQ(error_of([&] { require_grad(indices); }), "a tensor of i64 can have no gradient");
}

TEST(Tape, NeverWritesToAGradientThatOthersHold) {
  const Tensor x = leaf({1});
  const Tensor y = leaf({1});
  Tape tape;
  const Tensor a = scaled(x, 2);
  const Tensor b = scaled(y, 3);
  // Both sums hand their dy on twice; a and b each accumulate two of them.
  const Tensor c = sum(a, b);
  const Tensor d = sum(a, b);
  const Tensor e = sum(scaled(c, 10), scaled(d, 100));
  tape.backward(sum(e, sum(c, c)));
  EXPECT_THAT(grad(x).values(), ElementsAre(2 * 112));
  EXPECT_THAT(grad(y).values(), ElementsAre(3 * 112));
}

TEST(Tape, GivesEachLeafAGradientOfItsOwn) {
  const Tensor x = leaf({1, 1});
  const Tensor y = leaf({1, 1});
  const Tensor seed = Tensor::full({2}, 1);
  {
    Tape tape;
    tape.backward(sum(x, y), seed);
  }
  grad(x).fill(9);
  EXPECT_THAT(grad(y).values(), Each(1.0F));
  EXPECT_THAT(seed.values(), Each(1.0F));
}

TEST(Tape, TakesOverWithoutACopyWhatIsMovedIn) {
  const Tensor x = leaf({1, 1});
  Tensor made = Tensor::full({2}, 5);
  const std::byte* const place = made.raw();
  Gradient(x).add(std::move(made));
  EXPECT_EQ(grad(x).raw(), place);
}

TEST(Tape, AddsInPlaceUnlessOthersHoldTheSum) {
  const Tensor x = leaf({1, 1});
  const Gradient dx(x);
  const auto add_one = [](const Tensor& to, const Tensor& sum) {
    for (std::int64_t i = 0; i < 2; ++i) {
      to.data<float>()[i] = (sum.defined() ? sum.data<float>()[i] : 0) + 1;
    }
  };
  dx.accumulate(DType::f32, {}, add_one);
  EXPECT_THAT(grad(x).values(), ElementsAre(1, 1));
  const std::byte* const place = grad(x).raw();
  dx.accumulate(DType::f32, {}, add_one);
  EXPECT_THAT(grad(x).values(), ElementsAre(2, 2));
  EXPECT_EQ(grad(x).raw(), place);
  const Tensor held = grad(x);
  dx.accumulate(DType::f32, {}, add_one);
  EXPECT_THAT(grad(x).values(), ElementsAre(3, 3));
  EXPECT_THAT(held.values(), ElementsAre(2, 2));
  Gradient().accumulate(DType::f32, {}, [](const Tensor&, const Tensor&) { FAIL() << "nobody wants it"; });
}

TEST(Tape, AddsInPlaceInTheOrderThatIsAskedFor) {
  const kernels::Order order{1, 0};
  Tensor x = Tensor::zeros({2, 3});
  require_grad(x);
  const Gradient dx(x);
  const Tensor first = kernels::empty_in(order, {2, 3}, DType::f32);
  first.fill(1);
  dx.add(first.clone());  // row-major: what is asked for comes as a tensor of its own
  const auto add_rows = [](const Tensor& to, const Tensor& sum) {
    EXPECT_TRUE(to.transpose(0, 1).is_contiguous());
    EXPECT_FALSE(sum.defined());
    to.fill(2);
  };
  dx.accumulate(DType::f32, order, add_rows);
  EXPECT_THAT(grad(x).values(), testing::Each(3));
}

TEST(Tape, AddsToPartsOfAGradient) {
  const Tensor x = leaf({0, 0, 0, 0});
  const Gradient dx(x);
  const Tensor ones = Tensor::full({2}, 1);
  dx.add_part(0, 1, ones);
  EXPECT_THAT(grad(x).values(), ElementsAre(0, 1, 1, 0));
  const Tensor held = grad(x);
  dx.add_part(0, 2, ones);
  EXPECT_THAT(grad(x).values(), ElementsAre(0, 1, 2, 1));
  EXPECT_THAT(held.values(), ElementsAre(0, 1, 1, 0));
  dx.add(Tensor::full({4}, 10));
  EXPECT_THAT(grad(x).values(), ElementsAre(10, 11, 12, 11));
  EXPECT_EQ(error_of([&] { dx.add(ones); }), "the gradient of a tensor [4] has the shape [2]");
  EXPECT_EQ(error_of([&] { dx.add(Tensor::zeros({4}, DType::bf16)); }),
            "gradients of one tensor come as f32 and as bf16");
  EXPECT_EQ(error_of([&] { dx.add_part(0, 3, ones); }), "[3, 5) does not lie inside dimension 0 of [4]");
}

TEST(Tape, PlaysOpsWithSeveralOutputs) {
  const Tensor x = leaf({1, 2, 3});
  Tape tape;
  const std::vector<Tensor> parts = record("parts", std::vector<Tensor>{x.narrow(0, 0, 1), x.narrow(0, 1, 2)}, {&x},
                                           [dx = Gradient(x)](const std::vector<Tensor>& dys) {
                                             EXPECT_FALSE(dys[0].defined());
                                             dx.add_part(0, 1, dys[1]);
                                           });
  tape.backward(parts[1], Tensor::full({2}, 4));
  EXPECT_THAT(grad(x).values(), ElementsAre(0, 4, 4));
}

TEST(Tape, MakesNonContiguousContributionsDense) {
  Tensor x = Tensor::zeros({2, 3});
  require_grad(x);
  Tape tape;
  const Tensor y = record("transposed", x.transpose(0, 1), {&x},
                          [dx = Gradient(x)](const Tensor& dy) { dx.add(dy.transpose(0, 1)); });
  tape.backward(y, Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  EXPECT_TRUE(grad(x).is_contiguous());
  EXPECT_THAT(grad(x).values(), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(Tape, GivesAGradientTheLayoutOfItsTensor) {
  Tensor x = Tensor::zeros({2, 3, 4});
  require_grad(x);
  const auto numbers = [](std::int64_t factor) {
    std::vector<float> values(24);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(factor * static_cast<std::int64_t>(i));
    }
    return Tensor::from(values, {4, 2, 3});
  };
  Tape tape;
  Tensor seen;
  const Tensor y = record("permuted", x.permute({2, 0, 1}), {&x}, [dx = Gradient(x), &seen](const Tensor& dy) {
    seen = dy;
    dx.add(dy.permute({1, 2, 0}));
  });
  Gradient(y).add(numbers(10));
  tape.backward(y, numbers(1));
  EXPECT_EQ(seen.strides(), y.strides());
  EXPECT_EQ(seen.values(), numbers(11).values());
  EXPECT_EQ(grad(x).values(), numbers(11).permute({1, 2, 0}).values());
  const Tensor room = Gradient(y).empty(DType::bf16);
  EXPECT_EQ(room.strides(), y.strides());
  EXPECT_EQ(room.dtype(), DType::bf16);
}

TEST(Tape, ReleasesMemoryAsItPlays) {
  constexpr int depth = 32;
  Tensor x = Tensor::full({1 << 16}, 1);
  require_grad(x);
  Tape tape;
  Allocator& allocator = Allocator::instance();
  const std::size_t before = allocator.statistics().in_use;
  Tensor y = x;
  for (int i = 0; i < depth; ++i) {
    y = scaled(y, 1);
  }
  const std::size_t recorded = allocator.statistics().in_use;
  EXPECT_GE(recorded - before, depth * x.bytes());
  Tensor seed = Tensor::full(x.shape(), 1);
  allocator.reset_peak();
  tape.backward(y, std::move(seed));
  EXPECT_LE(allocator.statistics().peak, recorded + 4 * x.bytes());
  y = Tensor();
  EXPECT_LE(allocator.statistics().in_use, before + 2 * x.bytes());  // the gradient of x is left
}

TEST(Tape, PlaysAnOutputOnce) {
  const Tensor x = leaf({1});
  Tape tape;
  const Tensor y = scaled(x, 2);
  tape.backward(y);
  EXPECT_EQ(error_of([&] { tape.backward(y); }),
            "backward(): the output was not recorded on this tape, or backward() has already played it");
  EXPECT_THAT(grad(x).values(), ElementsAre(2));
  tape.backward(scaled(x, 3));  // the tape itself goes on
  EXPECT_THAT(grad(x).values(), ElementsAre(5));
}

TEST(Tape, NestsWithTheInnermostRecording) {
  const Tensor x = leaf({1});
  Tape outer;
  const Tensor y = scaled(x, 2);
  {
    Tape inner;
    EXPECT_EQ(Tape::current(), &inner);
    const Tensor z = scaled(x, 5);
    inner.backward(z);
    EXPECT_THAT(grad(x).values(), ElementsAre(5));
    EXPECT_THAT(error_of([&] { inner.backward(y); }), testing::HasSubstr("not recorded on this tape"));
  }
  EXPECT_EQ(Tape::current(), &outer);
  outer.backward(y);
  EXPECT_THAT(grad(x).values(), ElementsAre(7));
}

TEST(Tape, FindsWhatIsNotFiniteAndNamesTheOp) {
  const bool was = autograd::check_finite();
  autograd::set_check_finite(true);
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = leaf({1, infinity});
  EXPECT_EQ(error_of([&] { scaled(x, 2); }), "scaled: the output [2] holds inf at element 1");
  const Tensor y = leaf({1, 2});
  Tape tape;
  const Tensor seed = Tensor::from(std::vector<float>{0, std::numeric_limits<float>::quiet_NaN()}, {2});
  EXPECT_EQ(error_of([&] { tape.backward(scaled(y, 2), seed); }), "scaled: the gradient [2] holds nan at element 1");
  autograd::set_check_finite(false);
  EXPECT_NO_THROW(scaled(x, 2));
  autograd::set_check_finite(was);
}

// ---- activation checkpointing

constexpr int block_depth = 6;

struct Block {
  Tensor weight = leaf(std::vector<float>(1 << 14, 0.5F));
  Tensor operator()(const Tensor& input) const {
    Tensor x = sum(input, weight);
    for (int i = 0; i < block_depth; ++i) {
      x = scaled(x, 1.25F);
    }
    return x;
  }
};

struct Outcome {
  std::vector<float> y, dx, dweight;
  std::size_t kept;  // bytes that the tape kept after the forward
};

Outcome run_blocks(bool checkpointed) {
  const std::vector<Block> blocks(8);
  const Tensor x = leaf(std::vector<float>(1 << 14, 2.0F));
  Tape tape;
  const std::size_t before = Allocator::instance().statistics().in_use;
  Tensor y = x;
  for (const Block& block : blocks) {
    y = checkpointed ? autograd::checkpoint([&block](const Tensor& t) { return block(t); }, y) : block(y);
  }
  Outcome outcome;
  outcome.kept = Allocator::instance().statistics().in_use - before;
  outcome.y = y.values();
  tape.backward(y, random_tensor(y.shape()));
  outcome.dx = grad(x).values();
  outcome.dweight = grad(blocks[3].weight).values();
  return outcome;
}

TEST(Checkpoint, GivesTheSameValuesAndGradientsInLessMemory) {
  const Outcome plain = run_blocks(false);
  const Outcome checkpointed = run_blocks(true);
  EXPECT_EQ(checkpointed.y, plain.y);
  EXPECT_EQ(checkpointed.dx, plain.dx);
  EXPECT_EQ(checkpointed.dweight, plain.dweight);
  EXPECT_LT(checkpointed.kept * (block_depth - 1), plain.kept);
}

TEST(Checkpoint, TrainsParametersThoughItsInputWantsNoGradient) {
  const Block block;
  Tape tape;
  const Tensor x = Tensor::full({1 << 14}, 1);
  tape.backward(autograd::checkpoint([&](const Tensor& t) { return block(t); }, x), Tensor::full(x.shape(), 1));
  EXPECT_NEAR(grad(block.weight).values().front(), std::pow(1.25F, block_depth), 1e-5F);
  EXPECT_FALSE(requires_grad(x));
}

TEST(Checkpoint, NestsAndRecordsNothingWithoutATape) {
  const Tensor x = leaf({3});
  const auto twice = [](const Tensor& t) { return scaled(t, 2); };
  const auto nested = [&](const Tensor& t) { return scaled(autograd::checkpoint(twice, t), 5); };
  EXPECT_FALSE(requires_grad(autograd::checkpoint(nested, x)));
  Tape tape;
  const Tensor y = autograd::checkpoint(nested, x);
  EXPECT_THAT(y.values(), ElementsAre(30));
  tape.backward(y);
  EXPECT_THAT(grad(x).values(), ElementsAre(10));
}

}  // namespace
}  // namespace vitrail::test
