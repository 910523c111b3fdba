#include "vitrail/explain/projection.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/kernels/tsne.h"
#include "vitrail/tensor/random.h"

namespace vitrail::explain {
namespace {

using test::error_of;
using ::testing::HasSubstr;

io::Safetensors reference() { return test::golden("explain/projection.safetensors"); }

// Rows times -1 where that makes them point like those of `other`.
Tensor signed_like(const Tensor& rows, const Tensor& other) {
  Tensor result = rows.clone();
  const std::int64_t width = rows.size(1);
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    float* row = result.data<float>() + i * width;
    const float* like = other.contiguous().data<float>() + i * width;
    float along = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      along += row[j] * like[j];
    }
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] *= along < 0 ? -1.0F : 1.0F;
    }
  }
  return result;
}

TEST(Pca, IsScikitLearnsUpToSigns) {
  const io::Safetensors golden = reference();
  const Pca result = pca(golden.get("points"), 3);
  const Tensor components = golden.get("pca.components");
  test::expect_close(signed_like(result.components, components), components, 1e-5);
  const Tensor coordinates = golden.get("pca.coordinates").transpose(0, 1).contiguous();
  test::expect_close(signed_like(result.coordinates.transpose(0, 1).contiguous(), coordinates), coordinates, 1e-5);
  const std::vector<float> ratios = golden.get("pca.explained_variance_ratio").values();
  for (std::size_t k = 0; k < ratios.size(); ++k) {
    EXPECT_NEAR(result.explained_variance_ratio[k], static_cast<double>(ratios[k]), 1e-5);
  }
}

TEST(Pca, FindsAsManyComponentsAsThereAre) {
  const Tensor points = test::random_tensor({5, 3});
  EXPECT_EQ(pca(points, 3).coordinates.shape(), Shape({5, 3}));
  EXPECT_THAT(error_of([&] { pca(points, 4); }), HasSubstr("have at most 3 principal components, not 4"));
  const Pca same = pca(Tensor::full({4, 3}, 2.0), 2);  // no variance at all
  EXPECT_EQ(same.explained_variance_ratio[0], 0);
}

TEST(Tsne, IsAsGoodAsScikitLearns) {
  const io::Safetensors golden = reference();
  const Tensor points = golden.get("points");
  std::int64_t last = 0;
  const Tsne result = tsne(points, {}, [&](std::int64_t done) { last = done; });
  EXPECT_EQ(last, result.iterations);
  const std::vector<float> kl = golden.get("tsne.kl_divergences").values();  // from starts that hardly differ
  EXPECT_GE(result.kl_divergence, 0.98 * static_cast<double>(std::ranges::min(kl)));
  EXPECT_LE(result.kl_divergence, 1.02 * static_cast<double>(std::ranges::max(kl)));
  const std::vector<float> trust = golden.get("tsne.trustworthiness").values();
  EXPECT_NEAR(trustworthiness(points, result.coordinates, 5), static_cast<double>(trust[0]), 0.02);
  EXPECT_NEAR(trustworthiness(points, result.coordinates, 12), static_cast<double>(trust[1]), 0.02);
}

TEST(Trustworthiness, IsScikitLearns) {
  const io::Safetensors golden = reference();
  const std::vector<float> trust = golden.get("tsne.trustworthiness").values();
  const Tensor map = golden.get("tsne.coordinates");
  EXPECT_NEAR(trustworthiness(golden.get("points"), map, 5), static_cast<double>(trust[0]), 1e-5);
  EXPECT_NEAR(trustworthiness(golden.get("points"), map, 12), static_cast<double>(trust[1]), 1e-5);
}

TEST(Tsne, SaysWhatItCannotDo) {
  Tensor points = test::random_tensor({20, 4});
  EXPECT_THAT(error_of([&] { tsne(points); }), HasSubstr("perplexity must be above 0 and below the number of points"));
  EXPECT_THAT(error_of([&] { tsne(Tensor::full({40, 3}, 1.0)); }), HasSubstr("all points to project are the same"));
  points.data<float>()[9] = NAN;
  EXPECT_THAT(error_of([&] { pca(points, 2); }), HasSubstr("row 2 of the points to project has a number that is not"));
}

TEST(TsneForces, AreTheSumsOfTheirEquation) {
  const std::int64_t n = 37;  // no multiple of a vector
  const Tensor map = test::random_tensor({2, n});
  const Tensor p = test::random_tensor({n, n}, 1);
  const float* x = map.data<float>();
  const float* y = x + n;
  std::vector<float> attraction(static_cast<std::size_t>(2 * n));
  std::vector<float> repulsion(attraction.size());
  const double z = kernels::tsne_forces({n, x, y, p.data<float>()}, attraction.data(), repulsion.data());
  double expected_z = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double pull = 0;
    double push = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double dx = static_cast<double>(x[i] - x[j]);
      const double dy = static_cast<double>(y[i] - y[j]);
      const double q = i == j ? 0 : 1 / (1 + dx * dx + dy * dy);
      pull += static_cast<double>(p.data<float>()[i * n + j]) * q * dy;
      push += q * q * dy;
      expected_z += q;
    }
    EXPECT_NEAR(static_cast<double>(attraction[static_cast<std::size_t>(2 * i + 1)]), pull, 1e-4);
    EXPECT_NEAR(static_cast<double>(repulsion[static_cast<std::size_t>(2 * i + 1)]), push, 1e-4);
  }
  EXPECT_NEAR(z, expected_z, 1e-3);
}

// Of points among which none are near each other, the exaggerated attraction pulls all together, and the map must not
// stay there.
TEST(Tsne, SpreadsPointsWithoutClusters) {
  for (const std::int64_t count : {12, 100, 500}) {
    const Philox draws(1, static_cast<std::uint64_t>(count));
    Tensor x = Tensor::empty({count, 200});
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data<float>()[i] = draws.normal(static_cast<std::uint64_t>(i));
    }
    const Tensor map = tsne(x, {.perplexity = static_cast<double>(count) / 4}).coordinates;
    for (const std::int64_t k : {0, 1}) {
      const std::vector<float> values = map.select(1, k).values();
      const auto [least, most] = std::ranges::minmax_element(values);
      EXPECT_GT(*most - *least, 1.0F) << count << " points, dimension " << k;
    }
  }
}

}  // namespace
}  // namespace vitrail::explain
