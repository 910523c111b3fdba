#include "vitrail/ops/math/dropout.h"

#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {
namespace {

TEST(Dropout, KeepsExactlyWhatTheDrawsSay) {
  // Seeds and streams with all 64 bits in use; sizes around the vectors' ends.
  const Philox draws(0x123456789abcdef0U, 0xfedcba9876543210U);
  for (const std::int64_t n : {1, 3, 31, 32, 33, 65, 1001, 40000}) {
    for (const float p : {0.1F, 0.5F, 0.9F}) {
      const Tensor y = ops::dropout(Tensor::full({n}, 1), p, draws);
      for (std::int64_t i = 0; i < n; ++i) {
        const float expected = draws.uniform(static_cast<std::uint64_t>(i)) >= p ? 1 / (1 - p) : 0.0F;
        ASSERT_EQ(y.data<float>()[i], expected) << i << " of " << n << ", p = " << p;
      }
    }
  }
}

TEST(Dropout, DropsTheSameElementsInBf16) {
  const Philox draws(3, 4);
  const Tensor x = random_tensor({77});
  const std::vector<float> wide = ops::dropout(x, 0.5F, draws).values();
  const std::vector<float> narrow = ops::dropout(ops::cast(x, DType::bf16), 0.5F, draws).values();
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_NEAR(narrow[i], wide[i], 1e-2 * std::abs(wide[i]));
  }
}

TEST(Dropout, HasTheGradientOfFiniteDifferences) {
  check_gradients([](const std::vector<Tensor>& in) { return ops::dropout(in[0], 0.3F, Philox(1, 2)); },
                  {random_tensor({5, 13})});
}

TEST(Dropout, WithProbabilityZeroAndOne) {
  const Tensor x = random_tensor({9});
  EXPECT_EQ(ops::dropout(x, 0, Philox(1, 2)).raw(), x.raw());
  expect_close(ops::dropout(x, 1, Philox(1, 2)), Tensor::zeros({9}), 0);
  EXPECT_THROW(ops::dropout(x, 1.5F, Philox(1, 2)), Error);
}

TEST(DropPath, DropsWholeSamples) {
  const Philox draws(5, 6);
  const Tensor x = random_tensor({16, 3, 7});
  for (const bool scale : {true, false}) {
    const Tensor y = ops::drop_path(x, 0.4F, draws, scale);
    int dropped = 0;
    for (std::int64_t b = 0; b < 16; ++b) {
      const bool kept = draws.uniform(static_cast<std::uint64_t>(b)) >= 0.4F;
      dropped += kept ? 0 : 1;
      const float factor = kept ? (scale ? 1 / 0.6F : 1.0F) : 0.0F;
      for (std::int64_t i = 0; i < 21; ++i) {
        EXPECT_FLOAT_EQ(y.data<float>()[b * 21 + i], factor * x.data<float>()[b * 21 + i]);
      }
    }
    EXPECT_GT(dropped, 0);
    EXPECT_LT(dropped, 16);
  }
}

TEST(DropPath, HasTheGradientOfFiniteDifferences) {
  check_gradients([](const std::vector<Tensor>& in) { return ops::drop_path(in[0], 0.5F, Philox(1, 2)); },
                  {random_tensor({6, 5})});
}

TEST(DropPath, TakesEmptyInput) {
  EXPECT_EQ(ops::drop_path(Tensor::empty({0, 3}), 0.5F, Philox(1, 2)).shape().str(), "[0, 3]");
  EXPECT_EQ(ops::drop_path(Tensor::empty({3, 0}), 0.5F, Philox(1, 2)).shape().str(), "[3, 0]");
}

}  // namespace
}  // namespace vitrail::test
