#include "vitrail/ops/math/multinomial.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace vitrail::test {
namespace {

// Σ (observed - expected)² / expected over the outcomes, of which none that is impossible may have been observed.
double chi_squared(const std::map<std::vector<std::int64_t>, double>& probabilities,
                   const std::map<std::vector<std::int64_t>, double>& observed, double count) {
  double sum = 0;
  double seen = 0;
  for (const auto& [outcome, p] : probabilities) {
    const auto found = observed.find(outcome);
    const double times = found == observed.end() ? 0 : found->second;
    sum += (times - count * p) * (times - count * p) / (count * p);
    seen += times;
  }
  EXPECT_EQ(seen, count);
  return sum;
}

TEST(Multinomial, DrawsInProportionToTheWeights) {
  const std::vector<float> weights = {2, 0, 1, 5, 0, 0.5F, 0};
  const Tensor rows = Tensor::from(weights, {1, 7}).expand({40'000, 7});
  for (const bool replacement : {true, false}) {
    std::map<std::vector<std::int64_t>, double> probabilities;
    for (std::int64_t a = 0; a < 7; ++a) {
      for (std::int64_t b = 0; b < 7; ++b) {
        const double first = weights[static_cast<std::size_t>(a)] / 8.5;
        const double rest = replacement ? 8.5 : 8.5 - weights[static_cast<std::size_t>(a)];
        const double p = a == b && !replacement ? 0 : first * weights[static_cast<std::size_t>(b)] / rest;
        if (p > 0) {
          probabilities[{a, b}] = p;
        }
      }
    }
    const Tensor drawn = ops::multinomial(rows, 2, replacement, Philox(5, 1));
    ASSERT_EQ(drawn.shape(), (Shape{40'000, 2}));
    std::map<std::vector<std::int64_t>, double> observed;
    for (std::int64_t row = 0; row < drawn.size(0); ++row) {
      const std::int64_t* const pair = drawn.data<std::int64_t>() + 2 * row;
      ++observed[{pair[0], pair[1]}];
    }
    // The 99.9th percentiles for 15 and 11 degrees of freedom.
    EXPECT_LT(chi_squared(probabilities, observed, 40'000), replacement ? 37.7 : 31.3);
  }
}

TEST(Multinomial, DependsOnItsDrawsAlone) {
  const Tensor weights = Tensor::full({3, 50}, 0.25);
  const auto values = [&](std::uint64_t stream) {
    return ops::multinomial(weights, 20, false, Philox(1, stream)).values();
  };
  EXPECT_EQ(values(7), values(7));
  EXPECT_NE(values(7), values(8));
  const std::vector<float> all = ops::multinomial(weights.select(0, 0), 50, false, Philox(2, 2)).values();
  EXPECT_EQ(std::set<float>(all.begin(), all.end()).size(), 50);
}

TEST(Multinomial, SaysWhatIsWrongWithWeights) {
  const auto error = [](const std::vector<float>& weights, std::int64_t samples) {
    return error_of([&] {
      ops::multinomial(Tensor::from(weights, {1, std::ssize(weights)}), samples, false, Philox(1, 1));
    });
  };
  EXPECT_EQ(error({1, -0.5F}, 1), "multinomial(): row 0 has the weight -0.5");
  EXPECT_EQ(error({1, std::numeric_limits<float>::infinity()}, 1), "multinomial(): row 0 has the weight inf");
  EXPECT_EQ(error({0, 0}, 1), "multinomial(): all weights of row 0 are 0");
  EXPECT_EQ(error({1, 0, 2}, 3),
            "multinomial(): 3 of the 2 indices of row 0 that have a weight cannot be drawn without replacement");
  EXPECT_EQ(error({1}, 0), "multinomial() draws at least one index, not 0");
}

}  // namespace
}  // namespace vitrail::test
