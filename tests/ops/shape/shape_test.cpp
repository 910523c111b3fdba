#include "vitrail/ops/shape/shape.h"

#include <gmock/gmock.h>

#include "tests/ops/golden_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail::test {
namespace {

struct Rearrangement {
  std::vector<std::string> inputs;
  std::function<Tensor(const Operands&)> function;
};

const std::map<std::string, Rearrangement> rearrangements = {
    {"reshape",
     {{"x"},
      [](const Operands& in) {
        return ops::reshape(in.at("x"), {5, -1});
      }}},
    {"permute",
     {{"x"},
      [](const Operands& in) {
        return ops::permute(in.at("x"), {2, 0, -2});
      }}},
    {"transpose", {{"x"}, [](const Operands& in) { return ops::transpose(in.at("x"), 0, -1); }}},
    {"expand",
     {{"x"},
      [](const Operands& in) {
        return ops::expand(in.at("x"), {3, 2, 7, 5});
      }}},
    {"narrow", {{"x"}, [](const Operands& in) { return ops::narrow(in.at("x"), -2, 1, 2); }}},
    {"two_narrows",
     {{"x"}, [](const Operands& in) { return ops::narrow(in.at("x"), 1, 0, 2) * ops::narrow(in.at("x"), 1, 1, 2); }}},
    {"select", {{"x"}, [](const Operands& in) { return ops::select(in.at("x"), -1, 3); }}},
    {"unsqueeze", {{"x"}, [](const Operands& in) { return ops::unsqueeze(in.at("x"), 1); }}},
    {"squeeze", {{"x"}, [](const Operands& in) { return ops::squeeze(in.at("x"), -2); }}},
    {"contiguous", {{"x"}, [](const Operands& in) { return ops::contiguous(ops::transpose(in.at("x"), 0, 1)); }}},
    {"concat",
     {{"a", "b", "c"},
      [](const Operands& in) {
        return ops::concat({in.at("a"), in.at("b"), in.at("c")}, 1);
      }}},
    {"concat_last",
     {{"a", "b"},
      [](const Operands& in) {
        return ops::concat({ops::transpose(in.at("a"), 1, 2), ops::transpose(in.at("b"), 1, 2)}, -1);
      }}},
    {"split",
     {{"x"},
      [](const Operands& in) {
        const std::vector<Tensor> parts = ops::split(in.at("x"), {1, 3, 1}, 2);
        return ops::concat({parts[2] * 3.0F, parts[1] * 2.0F, parts[0]}, 2);
      }}},
    {"split_part",
     {{"x"},
      [](const Operands& in) {
        return ops::split(in.at("x"), {1, 3, 1}, -1)[1] * 1;
      }}},
    {"stack",
     {{"a", "b"},
      [](const Operands& in) {
        return ops::stack({in.at("a"), in.at("b")}, 2);
      }}},
    {"pad", {{"x"}, [](const Operands& in) { return ops::pad(in.at("x"), 1, 2, 1, 0.5F); }}},
    {"flip", {{"x"}, [](const Operands& in) { return ops::flip(in.at("x"), 1); }}},
    {"roll", {{"x"}, [](const Operands& in) { return ops::roll(in.at("x"), 2, -2); }}},
    {"roll_far", {{"x"}, [](const Operands& in) { return ops::roll(in.at("x"), 1, 13); }}},
};

void expect_golden_rearrangements(DType dtype, double tolerance) {
  const io::Safetensors file = golden("ops/shape.safetensors");
  for (const auto& [name, rearrangement] : rearrangements) {
    const Case one(file, name);
    ASSERT_TRUE(one.exists()) << name;
    expect_golden(one, rearrangement.inputs, {}, dtype, tolerance, rearrangement.function);
  }
}

TEST(ShapeOps, GivePyTorchsValuesAndGradients) { expect_golden_rearrangements(DType::f32, 1e-6); }
TEST(ShapeOps, GiveThemInBf16) { expect_golden_rearrangements(DType::bf16, 1e-2); }

TEST(ShapeOps, AreViewsWhereTheyCanBe) {
  const Tensor x = random_tensor({2, 3, 4});
  for (const Tensor& view : {ops::reshape(x, {6, 4}), ops::permute(x, {2, 0, 1}), ops::transpose(x, 0, 1),
                             ops::expand(x, {5, 2, 3, 4}), ops::narrow(x, 1, 0, 2), ops::select(x, 0, 0),
                             ops::unsqueeze(x, 0), ops::contiguous(x), ops::split(x, {1, 3}, 2)[0]}) {
    EXPECT_EQ(view.raw(), x.raw());
  }
}

TEST(ShapeOps, RearrangeEveryDType) {
  const Tensor x = Tensor::from(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(ops::concat({x, x}, 1).values(), testing::ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
  EXPECT_THAT(ops::flip(x, 1).values(), testing::ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(ops::roll(x, 0, 1).values(), testing::ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(ops::pad(x, 0, 0, 1, 9).values(), testing::ElementsAre(1, 2, 3, 4, 5, 6, 9, 9, 9));
}

TEST(ShapeOps, ConcatenateWithEmptyPartsAndAlongAnyDimension) {
  const Tensor x = random_tensor({3, 5, 7});
  const Tensor none = Tensor::empty({3, 0, 7});
  EXPECT_EQ(ops::concat({none, x, none}, 1).values(), x.values());
  for (int dim = 0; dim < 3; ++dim) {
    const auto parts = ops::split(x, {0, 1, x.size(dim) - 1}, dim);
    EXPECT_EQ(ops::concat(parts, dim).values(), x.values());
  }
}

// A gradient in place: no tensor of x's size for every part of it.
TEST(ShapeOps, NarrowsShareOneGradient) {
  Tensor x = random_tensor({64, 1024});
  autograd::require_grad(x);
  autograd::Tape tape;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < 64; ++i) {
    parts.push_back(ops::select(x, 0, i));
  }
  const Tensor y = ops::stack(parts, 0);
  parts.clear();
  Allocator::instance().reset_peak();
  const std::size_t before = Allocator::instance().statistics().in_use;
  const Tensor dy = random_tensor(x.shape(), 2);
  tape.backward(y, dy);
  EXPECT_EQ(autograd::grad(x).values(), dy.values());
  EXPECT_LT(Allocator::instance().statistics().peak - before, 5 * x.bytes());
}

TEST(ShapeOps, AddTheGradientsOfPartsThatOverlapAndOfTheWhole) {
  Tensor x = random_tensor({4});
  autograd::require_grad(x);
  autograd::Tape tape;
  const Tensor y = ops::add(ops::add(ops::narrow(x, 0, 0, 3), ops::narrow(x, 0, 1, 3)), ops::narrow(x + x, 0, 0, 3));
  tape.backward(y, Tensor::from(std::vector<float>{1, 10, 100}, {3}));
  EXPECT_THAT(autograd::grad(x).values(), testing::ElementsAre(3, 31, 310, 100));
}

// y = a x, by an op that writes its gradient; `strides` tells where.
Tensor scaled_in_place(const Tensor& x, float a, Shape* strides) {
  return autograd::record("scaled", x * a, {&x}, [dx = autograd::Gradient(x), a, strides](const Tensor& dy) {
    dx.write(DType::f32, [&](const Tensor& to) {
      to.copy_from(dy * a);
      *strides = to.strides();
    });
  });
}

TEST(ShapeOps, LetThePartsOfASplitWriteIntoOneGradient) {
  // Of three parts, in the order of backward: one is written; one is written, then added to; one is added, then
  // written.
  Tensor x = random_tensor({2, 6});
  autograd::require_grad(x);
  autograd::Tape tape;
  const std::vector<Tensor> parts = ops::split(x, {1, 2, 3}, 1);
  Shape first, second, third;
  const Tensor a = scaled_in_place(parts[0], 2, &first);
  const Tensor b_added = parts[1] * 10;
  const Tensor b_written = scaled_in_place(parts[1], 3, &second);  // recorded last, played first
  const Tensor c_written = scaled_in_place(parts[2], 5, &third);
  const Tensor c_added = parts[2] * 100;
  tape.backward(ops::concat({a, b_added + b_written, c_written + c_added}, 1), Tensor::full({2, 6}, 1));
  EXPECT_EQ(first, (Shape{6, 1})) << "in place";
  EXPECT_EQ(second, (Shape{6, 1})) << "in place";
  EXPECT_EQ(third, (Shape{3, 1})) << "in a tensor of its own: another one was there first";
  EXPECT_THAT(autograd::grad(x).values(), testing::ElementsAre(2, 13, 13, 105, 105, 105, 2, 13, 13, 105, 105, 105));
}

TEST(ShapeOps, SayWhatDoesNotFit) {
  const Tensor x = Tensor::full({2, 3}, 1);
  EXPECT_EQ(error_of([&] { ops::reshape(x, {4, -1}); }), "the shape [2, 3] cannot become [4, -1]");
  EXPECT_EQ(error_of([&] { ops::concat({}, 0); }), "concat() needs at least one tensor");
  EXPECT_EQ(error_of([&] { ops::stack({}, 0); }), "stack() needs at least one tensor");
  EXPECT_EQ(error_of([&] {
              ops::concat({x, Tensor::full({2, 4}, 1)}, 0);
            }),
            "concat() along dimension 0 cannot join [2, 3] and [2, 4]");
  EXPECT_EQ(error_of([&] {
              ops::concat({x, as(x, DType::bf16)}, 0);
            }),
            "concat() needs tensors of one dtype, not f32 and bf16");
  EXPECT_EQ(error_of([&] {
              ops::split(x, {1, 1}, 1);
            }),
            "split() of dimension 1 of [2, 3] needs lengths that add up to 3, not 2");
  EXPECT_EQ(error_of([&] { ops::narrow(x, 1, 2, 2); }), "[2, 4) does not lie inside dimension 1 of [2, 3]");
  EXPECT_EQ(error_of([&] { ops::pad(x, 1, -1, 0); }), "pad() cannot add -1 and 0 elements");
}

}  // namespace
}  // namespace vitrail::test
