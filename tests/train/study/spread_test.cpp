#include "vitrail/train/study/spread.h"

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::train {
namespace {

using ::testing::HasSubstr;

TEST(Spread, IsTorchs) {
  const io::Safetensors file = test::golden("self_supervised/losses.safetensors");
  for (const char* name : {"spread.tall", "spread.wide"}) {
    const EmbeddingSpread spread = embedding_spread(file.get(name));
    EXPECT_NEAR(spread.deviation, file.get(std::string(name) + ".deviation").item(), 1e-5) << name;
    EXPECT_NEAR(spread.effective_rank, file.get(std::string(name) + ".rank").item(), 1e-3) << name;
  }
}

TEST(Spread, TellsWhatHasCollapsed) {
  const Tensor same = Tensor::full({10, 8}, 0.5);
  EXPECT_NEAR(embedding_spread(same).deviation, 0, 1e-6);
  EXPECT_EQ(embedding_spread(same).effective_rank, 0);
  const Tensor two = Tensor::zeros({10, 8});  // two opposite points
  for (std::int64_t i = 0; i < 10; ++i) {
    two.data<float>()[i * 8 + 3] = i % 2 == 0 ? 1.0F : -2.0F;
  }
  EXPECT_NEAR(embedding_spread(two).effective_rank, 1, 1e-4);
  const Tensor many = test::random_tensor({400, 8});
  EXPECT_NEAR(embedding_spread(many).deviation, 1, 0.03);
  EXPECT_NEAR(embedding_spread(many).effective_rank, 8, 0.1);
}

TEST(Spread, NeedsFiniteEmbeddings) {
  EXPECT_THAT(test::error_of([] { embedding_spread(Tensor::zeros({1, 8})); }), HasSubstr("two or more"));
  const Tensor bad = test::random_tensor({4, 3});
  bad.data<float>()[5] = NAN;
  EXPECT_THAT(test::error_of([&] { embedding_spread(bad); }), HasSubstr("NaN"));
}

TEST(Eigenvalues, AreThoseOfKnownMatrices) {
  EXPECT_THAT(symmetric_eigenvalues({2, 1, 1, 2}, 2),
              testing::ElementsAre(testing::DoubleNear(1, 1e-12), testing::DoubleNear(3, 1e-12)));
  // The path graph's matrix has the eigenvalues 2 cos(k π / (n + 1)).
  constexpr std::size_t n = 9;
  std::vector<double> path(n * n);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    path[i * n + i + 1] = path[(i + 1) * n + i] = 1;
  }
  const std::vector<double> values = symmetric_eigenvalues(path, n);
  for (std::size_t k = 0; k < n; ++k) {
    EXPECT_NEAR(values[k], -2 * std::cos(static_cast<double>(k + 1) * M_PI / 10), 1e-12);
  }
}

}  // namespace
}  // namespace vitrail::train
