#include "vitrail/generate/search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;

const std::vector<double> probabilities = {0.3, 0.25, 0.2, 0.1, 0.1, 0.05};

// The probability that `token` is the likeliest of `count` tokens that are drawn one after the other, without those
// that were drawn before, whose probabilities sum to `gone`.
double is_best_drawn(std::size_t token, int count, Ids drawn = {}, double gone = 0) {
  double result = 0;
  for (std::size_t next = token; count > 0 && next < probabilities.size(); ++next) {  // those before are likelier
    const auto id = static_cast<std::int64_t>(next);
    if (std::ranges::find(drawn, id) == drawn.end()) {
      Ids with_next = drawn;
      with_next.push_back(id);
      result +=
          probabilities[next] / (1 - gone) * is_best_drawn(token, count - 1, with_next, gone + probabilities[next]);
    }
  }
  const auto id = static_cast<std::int64_t>(token);
  return count > 0 ? result : static_cast<double>(std::ranges::count(drawn, id));
}

// transformers draws two continuations a beam, sorts them, and lets the best of them end (_get_top_k_continuations()).
TEST(BeamSearch, EndsWithTheBestOfWhatItHasDrawn) {
  GenerationConfig config;
  config.do_sample = true;
  config.num_beams = 2;
  const GenerateOptions options{.seed = 4};
  const Ids prompt = {0};
  constexpr std::int64_t trials = 4000;
  std::vector<double> shares(probabilities.size());
  for (std::int64_t number = 0; number < trials; ++number) {
    std::vector<float> logits;
    for (const double probability : probabilities) {
      logits.push_back(static_cast<float>(std::log(probability)));
    }
    const auto search = begin_search({prompt, config, options, number, 1});
    search->advance(logits, std::ssize(probabilities));
    ASSERT_TRUE(search->done());
    shares[static_cast<std::size_t>(search->sequences().front().ids.front())] += 1.0 / trials;
  }
  for (std::size_t token = 0; token < shares.size(); ++token) {
    const double expected = is_best_drawn(token, 4);
    const double deviation = std::sqrt(expected * (1 - expected) / trials);
    EXPECT_NEAR(shares[token], expected, 4 * deviation) << "token " << token;
  }
  EXPECT_NEAR(is_best_drawn(0, 1), 0.3, 1e-9);
  EXPECT_GT(is_best_drawn(0, 4), 0.75);
}

}  // namespace
}  // namespace vitrail::generate
