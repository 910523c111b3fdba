#include "vitrail/generate/processors.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

// The scores of a distribution, and what is left of it.
std::vector<float> filtered(GenerationConfig config, std::vector<float> scores, std::int64_t least = 1) {
  config.do_sample = true;
  process_scores(config, Ids{0}, 1, 10, least, scores);
  return scores;
}

TEST(Filters, LeaveWhatTransformersLeaves) {
  const io::Safetensors golden = test::golden("generate/filters.safetensors");
  const std::vector<float> scores = golden.get("scores").values();
  const auto expect = [&](const std::string& name, auto&& change, std::int64_t least = 1) {
    GenerationConfig config;
    config.top_k = 0;
    change(config);
    const std::vector<float> actual = filtered(config, scores, least);
    const std::vector<float> expected = golden.get(name).values();
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(std::isinf(actual[i]), std::isinf(expected[i])) << name << ", token " << i;
      if (!std::isinf(expected[i])) {
        EXPECT_FLOAT_EQ(actual[i], expected[i]) << name << ", token " << i;
      }
    }
  };
  expect("temperature", [](GenerationConfig& c) { c.temperature = 0.7; });
  expect("top_k", [](GenerationConfig& c) { c.top_k = 7; });
  expect("top_p", [](GenerationConfig& c) { c.top_p = 0.8; });
  expect(
      "top_p.tiny", [](GenerationConfig& c) { c.top_p = 1e-3; }, 3);
  expect("min_p", [](GenerationConfig& c) { c.min_p = 0.2; });
  expect("typical_p", [](GenerationConfig& c) { c.typical_p = 0.6; });
  expect("epsilon", [](GenerationConfig& c) { c.epsilon_cutoff = 0.02; });
  expect("eta", [](GenerationConfig& c) { c.eta_cutoff = 0.05; });
  expect("all", [](GenerationConfig& c) {
    c.temperature = 1.5;
    c.top_k = 30;
    c.top_p = 0.9;
    c.min_p = 0.05;
    c.typical_p = 0.9;
    c.repetition_penalty = 1;
  });
  expect("renormalized", [](GenerationConfig& c) {
    c.top_k = 7;
    c.renormalize_logits = true;
  });
  const auto of_nan = [&] { filtered({}, {0, std::nanf(""), 1}, 1); };
  EXPECT_THAT(error_of(of_nan), testing::HasSubstr("the model gives NaN for the next token"));
}

// Pearson's test: the frequencies of draws are those of the distribution.
TEST(Draw, HasTheFrequenciesOfTheDistribution) {
  const std::vector<float> scores = {0, 1, -1, 2, -INFINITY, 0.5F};
  double sum = 0;
  for (const float score : scores) {
    sum += std::exp(score);
  }
  constexpr int draws = 20000;
  std::vector<int> counts(scores.size(), 0);
  const Philox random(1, 2);
  for (int i = 0; i < draws; ++i) {
    ++counts[static_cast<std::size_t>(draw(scores, random.uniform(static_cast<std::uint64_t>(i))))];
  }
  double chi_square = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double expected = draws * std::exp(scores[i]) / sum;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0);
    } else {
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  EXPECT_LT(chi_square, 18.5);  // four degrees of freedom: exceeded once in a thousand times
}

}  // namespace
}  // namespace vitrail::generate
