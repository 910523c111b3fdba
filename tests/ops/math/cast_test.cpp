#include <limits>

#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {
namespace {

TEST(Cast, RoundsToBf16AsPyTorch) {
  const AllowNonFinite allow;
  const io::Safetensors file = golden("ops/cast.safetensors");
  const Tensor rounded = ops::cast(file.get("f32"), DType::bf16);
  const Tensor expected = file.get("bf16");
  ASSERT_EQ(rounded.shape().str(), expected.shape().str());
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    EXPECT_EQ(rounded.data<bf16>()[i].bits, expected.data<bf16>()[i].bits) << i;
    EXPECT_EQ(rounded.data<bf16>()[i].bits, bf16(file.get("f32").data<float>()[i]).bits) << i;
  }
}

TEST(Cast, KeepsNaN) {
  const AllowNonFinite allow;
  const Tensor x = Tensor::from(std::vector<float>(21, std::numeric_limits<float>::quiet_NaN()), {21});
  for (const float y : ops::cast(x, DType::bf16).values()) {
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Cast, BringsSmallIntegersThroughEveryPairOfDtypes) {
  const std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::i8, DType::u8, DType::i32, DType::i64};
  const Tensor x = Tensor::from(std::vector<float>{0, 1, 2, 3, 100, 127, 64}, {7});
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      const Tensor there = ops::cast(ops::cast(x, from), to);
      EXPECT_EQ(name_of(there.dtype()), name_of(to));
      EXPECT_EQ(there.values(), x.values()) << name_of(from) << " to " << name_of(to);
    }
    EXPECT_EQ(ops::cast(ops::cast(x, from), DType::boolean).values(), (std::vector<float>{0, 1, 1, 1, 1, 1, 1}));
  }
}

TEST(Cast, TakesTheNearestIntegerThatTheTypeHas) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from(std::vector<float>{-1.9F, 1.9F, 300, -300, inf, -inf, std::nanf(""), 0.5F}, {8});
  EXPECT_EQ(ops::cast(x, DType::u8).values(), (std::vector<float>{0, 1, 255, 0, 255, 0, 0, 0}));
  EXPECT_EQ(ops::cast(x, DType::i8).values(), (std::vector<float>{-1, 1, 127, -128, 127, -128, 0, 0}));
  EXPECT_EQ(ops::cast(x, DType::i64).data<std::int64_t>()[4], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(ops::cast(x, DType::boolean).values(), (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Cast, PassesTheGradientBackInTheInputsDtype) {
  Tensor x = random_tensor({3, 5});
  autograd::require_grad(x);
  autograd::Tape tape;
  const Tensor y = ops::cast(x, DType::bf16);
  tape.backward(y, ops::cast(Tensor::full({3, 5}, 0.5), DType::bf16));
  EXPECT_EQ(name_of(autograd::grad(x).dtype()), "f32");
  expect_close(autograd::grad(x), Tensor::full({3, 5}, 0.5), 0);
}

TEST(Cast, TakesStridedAndEmptyInput) {
  const Tensor x = random_tensor({4, 6});
  EXPECT_EQ(ops::cast(x.transpose(0, 1), DType::bf16).values(), ops::cast(x, DType::bf16).transpose(0, 1).values());
  EXPECT_EQ(ops::cast(Tensor::empty({0, 2}), DType::i8).numel(), 0);
}

TEST(Cast, ToTheSameDtypeIsTheTensorItself) {
  const Tensor x = random_tensor({3});
  EXPECT_EQ(ops::cast(x, DType::f32).raw(), x.raw());
}

}  // namespace
}  // namespace vitrail::test
