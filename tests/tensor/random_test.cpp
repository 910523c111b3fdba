#include "vitrail/tensor/random.h"

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/errors.h"

namespace vitrail::test {
namespace {

using testing::ElementsAre;

// The known answers of Random123 (kat_vectors, philox4x32-10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(Philox(0, 0).block(0), ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_THAT(Philox(ones, ones).block(ones), ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(Philox(0x299f31d0a4093822U, 0x0370734413198a2eU).block(0x85a308d3243f6a88U),
              ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

TEST(Philox, GivesWordsOfItsBlocks) {
  const Philox philox(1, 2);
  EXPECT_EQ(philox.word(4 * 7 + 3), philox.block(7)[3]);
  EXPECT_NE(philox.word(0), Philox(1, 3).word(0));
  EXPECT_NE(philox.word(0), Philox(2, 2).word(0));
}

// Mean, variance, skewness and kurtosis of n draws.
std::array<double, 4> moments(int n, const std::function<double(int)>& draw) {
  std::vector<double> values;
  double mean = 0;
  for (int i = 0; i < n; ++i) {
    values.push_back(draw(i));
    mean += values.back() / n;
  }
  double second = 0;
  double third = 0;
  double fourth = 0;
  for (const double value : values) {
    const double d = value - mean;
    second += d * d / n;
    third += d * d * d / n;
    fourth += d * d * d * d / n;
  }
  return {mean, second, third / std::pow(second, 1.5), fourth / (second * second)};
}

constexpr int many = 100000;

TEST(Philox, DrawsUniformlyAndNormally) {
  const Philox philox(42, 0);
  const auto uniform = moments(many, [&](int i) { return philox.uniform(static_cast<std::uint64_t>(i)); });
  EXPECT_NEAR(uniform[0], 0.5, 0.005);
  EXPECT_NEAR(uniform[1], 1.0 / 12, 0.001);
  const auto normal = moments(many, [&](int i) { return philox.normal(static_cast<std::uint64_t>(i)); });
  EXPECT_NEAR(normal[0], 0, 0.015);
  EXPECT_NEAR(normal[1], 1, 0.02);
  EXPECT_NEAR(normal[2], 0, 0.04);
  EXPECT_NEAR(normal[3], 3, 0.1);
  for (std::uint64_t i = 0; i < 10000; ++i) {
    ASSERT_GE(philox.uniform(i), 0.0F);
    ASSERT_LT(philox.uniform(i), 1.0F);
    ASSERT_TRUE(std::isfinite(philox.normal(i)));
  }
}

TEST(RandomStream, GivesStreamAfterStream) {
  RandomStream stream(5, 10);
  EXPECT_EQ(stream.next().stream(), 10U);
  const Philox second = stream.next();
  EXPECT_EQ(second.stream(), 11U);
  EXPECT_EQ(second.word(3), RandomStream(5, 11).next().word(3));
}

TEST(Draws, HaveTheMomentsOfTheirDistributions) {
  Draws draws(Philox(7, 1));
  const auto uniform = moments(many, [&](int) { return draws.uniform(-2, 4); });
  EXPECT_NEAR(uniform[0], 1, 0.02);
  EXPECT_NEAR(uniform[1], 3, 0.04);
  const auto normal = moments(many, [&](int) { return draws.normal(); });
  EXPECT_NEAR(normal[0], 0, 0.015);
  EXPECT_NEAR(normal[1], 1, 0.02);
  EXPECT_NEAR(normal[3], 3, 0.1);
  for (const auto& [a, b] : {std::pair(0.8, 0.8), std::pair(0.2, 0.2), std::pair(1.0, 1.0), std::pair(3.0, 1.5)}) {
    const auto beta = moments(many, [&, a = a, b = b](int) { return draws.beta(a, b); });
    EXPECT_NEAR(beta[0], a / (a + b), 0.006) << a << ", " << b;
    EXPECT_NEAR(beta[1], a * b / ((a + b) * (a + b) * (a + b + 1)), 0.004) << a << ", " << b;
  }
  EXPECT_EQ(error_of([&] { draws.beta(0, 1); }), "Beta(0, 1) is not defined: both must be positive");
}

TEST(Draws, GiveEveryIntegerOfTheRangeEquallyOften) {
  Draws draws(Philox(7, 2));
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    const std::int64_t value = draws.integer(-3, 4);
    ASSERT_GE(value, -3);
    ASSERT_LT(value, 4);
    ++counts[static_cast<std::size_t>(value + 3)];
  }
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(9600), testing::Lt(10400))));
  EXPECT_EQ(error_of([&] { draws.integer(2, 2); }), "no integer lies in [2, 2)");
}

TEST(Draws, RepeatThemselvesForTheSameStream) {
  Draws one(Philox(3, 4));
  Draws two(Philox(3, 4));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(one.uniform(), two.uniform());
    EXPECT_EQ(one.integer(0, 1000), two.integer(0, 1000));
    EXPECT_EQ(one.beta(0.4, 0.4), two.beta(0.4, 0.4));
  }
}

// The first words of a stream in their order, whatever the compiler evaluates first.
TEST(Draws, TakeTheWordsInOrder) {
  const Philox philox(9, 9);
  const auto high = static_cast<double>(philox.word(0));
  const auto low = static_cast<double>(philox.word(1) >> 11);
  EXPECT_EQ(Draws(philox).uniform(), (high * 0x1p21 + low) * 0x1p-53);
  EXPECT_EQ(Draws(philox).integer(0, std::int64_t{1} << 62),
            static_cast<std::int64_t>(((std::uint64_t{philox.word(0)} << 32) | philox.word(1)) % (1ULL << 62)));
}

TEST(Hash, IsFnv1aAndMixTellsNumbersApart) {
  EXPECT_EQ(hash(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8U);
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 50; ++a) {
    for (std::uint64_t b = 0; b < 50; ++b) {
      seen.insert(mix(a, b));
    }
  }
  EXPECT_EQ(seen.size(), 2500U);
}

}  // namespace
}  // namespace vitrail::test
