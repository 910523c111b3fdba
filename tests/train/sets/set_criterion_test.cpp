#include "vitrail/train/sets/set_criterion.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/tensor/random.h"

namespace vitrail::train {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

models::SetOutputs random_outputs(std::int64_t sets, std::int64_t queries, std::int64_t classes, std::int64_t values,
                                  std::uint64_t seed) {
  Draws draws(Philox(seed, hash("outputs")));
  models::SetOutputs said{Tensor::empty({sets, queries, classes + 1}), Tensor::empty({sets, queries, values})};
  for (const Tensor& x : {said.logits, said.values}) {
    std::ranges::generate(x.span<float>(), [&] { return static_cast<float>(draws.normal()); });
  }
  return said;
}

std::vector<TargetSet> random_targets(const std::vector<std::int64_t>& counts, std::int64_t classes,
                                      std::int64_t values, std::uint64_t seed) {
  Draws draws(Philox(seed, hash("targets")));
  std::vector<TargetSet> targets(counts.size());
  for (std::size_t s = 0; s < counts.size(); ++s) {
    for (std::int64_t t = 0; t < counts[s]; ++t) {
      targets[s].labels.push_back(draws.integer(0, classes));
      for (std::int64_t v = 0; v < values; ++v) {
        targets[s].values.push_back(static_cast<float>(draws.normal()));
      }
    }
  }
  return targets;
}

std::vector<std::int64_t> counts_of(const std::vector<TargetSet>& targets) {
  std::vector<std::int64_t> counts;
  for (const TargetSet& target : targets) {
    counts.push_back(target.count());
  }
  return counts;
}

// What a pair costs, by the equation.
double pair_cost(const models::SetOutputs& said, std::int64_t set, std::int64_t query, const TargetSet& target,
                 std::int64_t t) {
  const std::vector<float> logits = said.logits.select(0, set).select(0, query).values();
  const std::vector<float> values = said.values.select(0, set).select(0, query).values();
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit));
  }
  double cost =
      -std::exp(static_cast<double>(logits[static_cast<std::size_t>(target.labels[static_cast<std::size_t>(t)])])) /
      sum;
  for (std::size_t v = 0; v < values.size(); ++v) {
    cost += 5 * std::abs(static_cast<double>(values[v]) -
                         static_cast<double>(target.values[static_cast<std::size_t>(t) * values.size() + v]));
  }
  return cost;
}

// The least cost of all ways to give queries to targets.
double least_cost(const models::SetOutputs& said, std::int64_t set, const TargetSet& target) {
  const std::int64_t queries = said.logits.size(1);
  const std::int64_t places = std::max(queries, target.count());
  std::vector<std::int64_t> order(static_cast<std::size_t>(places));  // place i of the targets has query order[i]
  std::iota(order.begin(), order.end(), 0);
  double least = INFINITY;
  do {
    double cost = 0;
    for (std::int64_t t = 0; t < target.count(); ++t) {
      const std::int64_t query = order[static_cast<std::size_t>(t)];
      cost += query < queries ? pair_cost(said, set, query, target, t) : 0;
    }
    least = std::min(least, cost);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(Matcher, FindsTheLeastCostOfAllWaysToMatch) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const models::SetOutputs said = random_outputs(6, 5, 3, 2, seed);  // two layers
    const std::vector<TargetSet> targets = random_targets({3, 0, 6}, 3, 2, seed);
    const std::vector<Assignment> matches = value_matcher(targets)(said, counts_of(targets));
    ASSERT_EQ(matches.size(), 6);
    for (std::int64_t s = 0; s < 6; ++s) {
      const TargetSet& target = targets[static_cast<std::size_t>(s) % 3];
      const Assignment& pairs = matches[static_cast<std::size_t>(s)];
      ASSERT_EQ(std::ssize(pairs.rows), std::min<std::int64_t>(5, target.count()));
      double cost = 0;
      for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
        cost += pair_cost(said, s, pairs.rows[i], target, pairs.columns[i]);
      }
      EXPECT_NEAR(cost, least_cost(said, s, target), 1e-4) << "seed " << seed << ", set " << s;
    }
  }
}

TEST(Matcher, WithoutCostsGivesQueryIToTargetI) {
  const models::SetOutputs said = random_outputs(2, 3, 1, 1, 1);
  const std::vector<Assignment> matches = Matcher{}(said, std::vector<std::int64_t>{2, 5});
  EXPECT_THAT(matches[0].rows, ElementsAre(0, 1));
  EXPECT_THAT(matches[0].columns, ElementsAre(0, 1));
  EXPECT_THAT(matches[1].rows, ElementsAre(0, 1, 2));
}

SetCriterion l1_criterion(std::span<const TargetSet> targets) {
  return {value_matcher(targets), {{5, l1_distance}}, 0.1};
}

TEST(SetCriterion, DoesNotDependOnTheOrderOfTheTargetsIfItMatches) {
  const models::SetOutputs said = random_outputs(4, 5, 3, 2, 3);
  const std::vector<TargetSet> targets = random_targets({4, 3}, 3, 2, 3);
  std::vector<TargetSet> turned = targets;
  for (TargetSet& target : turned) {
    std::ranges::rotate(target.labels, target.labels.begin() + 1);
    std::ranges::rotate(target.values, target.values.begin() + 2);
  }
  const float loss = l1_criterion(targets)(said, targets).loss.item();
  EXPECT_NEAR(l1_criterion(turned)(said, turned).loss.item(), loss, 1e-5);
  const SetCriterion in_order{.matcher = {}, .value_losses = {{5, l1_distance}}};
  EXPECT_GT(in_order(said, targets).loss.item(), loss + 1);
  EXPECT_GT(std::abs(in_order(said, turned).loss.item() - in_order(said, targets).loss.item()), 0.1);
}

TEST(SetCriterion, IsTheSumOverLayersOfItsEquation) {
  const models::SetOutputs said = random_outputs(4, 5, 3, 2, 4);
  const std::vector<TargetSet> targets = random_targets({4, 2}, 3, 2, 4);
  const SetCriterion::Result found = l1_criterion(targets)(said, targets);
  double expected = 0;
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    double entropy = 0;
    double weights = 0;
    double distance = 0;
    for (std::int64_t s = 2 * layer; s < 2 * layer + 2; ++s) {
      const Assignment& pairs = found.matches[static_cast<std::size_t>(s)];
      const TargetSet& target = targets[static_cast<std::size_t>(s % 2)];
      for (std::int64_t q = 0; q < 5; ++q) {
        const auto place = std::ranges::find(pairs.rows, q);
        const bool matched = place != pairs.rows.end();
        const std::int64_t t = matched ? pairs.columns[static_cast<std::size_t>(place - pairs.rows.begin())] : 0;
        const auto label = matched ? static_cast<std::size_t>(target.labels[static_cast<std::size_t>(t)]) : 3U;
        const std::vector<float> logits = said.logits.select(0, s).select(0, q).values();
        double sum = 0;
        for (const float logit : logits) {
          sum += std::exp(static_cast<double>(logit));
        }
        const double weight = matched ? 1 : 0.1;
        entropy -= weight * std::log(std::exp(static_cast<double>(logits[label])) / sum);
        weights += weight;
        for (std::int64_t v = 0; v < 2 && matched; ++v) {
          distance += std::abs(
              static_cast<double>(said.values.select(0, s).select(0, q).values()[static_cast<std::size_t>(v)]) -
              static_cast<double>(target.values[static_cast<std::size_t>(2 * t + v)]));
        }
      }
    }
    expected += entropy / weights + 5 * distance / 6;
  }
  EXPECT_NEAR(found.loss.item(), expected, 1e-4);
}

TEST(SetCriterion, HasTheGradientOfItsLoss) {
  models::SetOutputs said = random_outputs(2, 4, 2, 2, 5);
  const std::vector<TargetSet> targets = random_targets({3, 1}, 2, 2, 5);
  autograd::require_grad(said.logits);
  autograd::require_grad(said.values);
  {
    autograd::Tape tape;
    tape.backward(l1_criterion(targets)(said, targets).loss);
  }
  const autograd::NoGrad no_grad;
  for (const Tensor& leaf : {said.logits, said.values}) {
    const std::vector<float> gradient = autograd::grad(leaf).values();
    Tensor x = leaf.detach();
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      float& number = x.data<float>()[i];
      const float before = number;
      const auto loss_at = [&](float value) {
        number = value;
        return static_cast<double>(l1_criterion(targets)(said, targets).loss.item());
      };
      constexpr float step = 1e-2F;
      const double slope = (loss_at(before + step) - loss_at(before - step)) / (2 * static_cast<double>(step));
      number = before;
      EXPECT_NEAR(gradient[i], slope, 5e-3);
    }
  }
}

TEST(SetCriterion, SaysWhatDoesNotFit) {
  const models::SetOutputs said = random_outputs(2, 3, 2, 1, 1);
  const std::vector<TargetSet> beyond(2, {{2}, {0.5F}});
  EXPECT_THAT(error_of([&] { l1_criterion(beyond)(said, beyond); }),
              HasSubstr("a target is of class 2, expected 0 … 1"));
  const std::vector<TargetSet> wide(2, {{1}, {0.5F, 1}});
  EXPECT_THAT(error_of([&] { l1_criterion(wide)(said, wide); }),
              HasSubstr("1 targets of 1 values, but 2 values in all"));
  const std::vector<TargetSet> three(3);
  EXPECT_THAT(error_of([&] { l1_criterion(three)(said, three); }), HasSubstr("no whole number of layers for 3 sets"));
  EXPECT_THAT(error_of([&] {
                l1_criterion(beyond)({said.logits, Tensor::zeros({2, 4, 1})}, beyond);
              }),
              HasSubstr("predictions are logits [S, Q, C] and values [S, Q, V]"));
}

}  // namespace
}  // namespace vitrail::train
