#include "vitrail/train/sets/set_criterion.h"

#include <algorithm>
#include <cmath>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

// The numbers of sets, of their queries, of classes with "nothing", and of values.
struct SetSizes {
  std::int64_t sets;
  std::int64_t queries;
  std::int64_t classes;
  std::int64_t values;
};

SetSizes sizes_of_sets(const models::SetOutputs& said, std::size_t targets) {
  const Tensor& logits = said.logits;
  const bool fit = logits.rank() == 3 && said.values.rank() == 3 && said.values.size(0) == logits.size(0) &&
                   said.values.size(1) == logits.size(1);
  check(fit, "predictions are logits [S, Q, C] and values [S, Q, V], not {} and {}", logits.shape(),
        said.values.shape());
  check(targets > 0 && logits.size(0) % static_cast<std::int64_t>(targets) == 0,
        "{} sets of predictions are no whole number of layers for {} sets of targets", logits.size(0), targets);
  return {logits.size(0), logits.size(1), logits.size(2), said.values.size(2)};
}

void check_targets(std::span<const TargetSet> targets, const SetSizes& sizes) {
  for (const TargetSet& target : targets) {
    check(std::ssize(target.values) == target.count() * sizes.values,
          "a set has {} targets of {} values, but {} values in all", target.count(), sizes.values,
          target.values.size());
    for (const std::int64_t label : target.labels) {
      check(label >= 0 && label < sizes.classes - 1, "a target is of class {}, expected 0 … {}", label,
            sizes.classes - 2);
    }
  }
}

// By itself, the loop keeps the largest one in a register; among calls of exp() it would be kept in memory, which takes
// as long as all of those.
[[gnu::noinline]] float largest_of(std::span<const float> numbers) {
  float largest = numbers[0];
  for (const float number : numbers) {
    largest = std::max(largest, number);
  }
  return largest;
}

// The probabilities of a row of logits.
void softmax_of_row(std::span<const float> logits, std::vector<float>& probabilities) {
  const float most = largest_of(logits);
  float sum = 0;
  probabilities.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    probabilities[i] = std::exp(logits[i] - most);
    sum += probabilities[i];
  }
  for (float& p : probabilities) {
    p /= sum;
  }
}

Assignment in_order(std::int64_t count) {
  Assignment result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.rows.push_back(i);
    result.columns.push_back(i);
  }
  return result;
}

// Everything about the matched pairs of all sets.
struct MatchedPairs {
  std::vector<std::int64_t> places;  // of the queries among those of all sets
  std::vector<std::int64_t> labels;
  std::vector<float> values;
  std::size_t of_last = 0;  // where the pairs of the last layer begin
};

MatchedPairs matched_pairs(const std::vector<Assignment>& matches, std::span<const TargetSet> targets,
                           const SetSizes& sizes) {
  MatchedPairs pairs;
  for (std::size_t s = 0; s < matches.size(); ++s) {
    if (s + targets.size() == matches.size()) {
      pairs.of_last = pairs.places.size();
    }
    const TargetSet& target = targets[s % targets.size()];
    for (std::size_t i = 0; i < matches[s].rows.size(); ++i) {
      const std::int64_t t = matches[s].columns[i];
      pairs.places.push_back(static_cast<std::int64_t>(s) * sizes.queries + matches[s].rows[i]);
      pairs.labels.push_back(target.labels[static_cast<std::size_t>(t)]);
      const auto values = target.values.begin() + t * sizes.values;
      pairs.values.insert(pairs.values.end(), values, values + sizes.values);
    }
  }
  return pairs;
}

// The likeliest class of each query, of logits [S · Q, C].
std::vector<std::int64_t> likeliest_classes(const Tensor& logits) {
  const Tensor indices = ops::argmax(logits.detach(), 1);
  const auto all = indices.span<std::int64_t>();
  return {all.begin(), all.end()};
}

}  // namespace

std::vector<Assignment> Matcher::operator()(const models::SetOutputs& said,
                                            std::span<const std::int64_t> counts) const {
  const SetSizes sizes = sizes_of_sets(said, counts.size());
  const Tensor logits = said.logits.detach().contiguous();
  const Tensor values = said.values.detach().contiguous();
  const std::span<const float> all_logits = logits.span<float>();
  const std::span<const float> all_values = values.span<float>();
  const auto classes = static_cast<std::size_t>(sizes.classes);
  const auto numbers = static_cast<std::size_t>(sizes.values);
  std::vector<Assignment> result;
  result.reserve(static_cast<std::size_t>(sizes.sets));
  std::vector<float> probabilities;
  std::vector<float> matrix;
  for (std::int64_t s = 0; s < sizes.sets; ++s) {
    const std::size_t set = static_cast<std::size_t>(s) % counts.size();
    const std::int64_t count = counts[set];
    if (!costs) {
      result.push_back(in_order(std::min(count, sizes.queries)));
      continue;
    }
    const auto width = static_cast<std::size_t>(count);
    matrix.resize(static_cast<std::size_t>(sizes.queries) * width);
    for (std::int64_t q = 0; q < sizes.queries && count > 0; ++q) {
      const auto place = static_cast<std::size_t>(s * sizes.queries + q);
      softmax_of_row(all_logits.subspan(place * classes, classes), probabilities);
      costs({probabilities, all_values.subspan(place * numbers, numbers)}, set,
            std::span(matrix).subspan(static_cast<std::size_t>(q) * width, width));
    }
    result.push_back(assign(matrix, count == 0 ? 0 : sizes.queries, count));
  }
  return result;
}

Matcher value_matcher(std::span<const TargetSet> targets, double set_cost_class, double set_cost_value) {
  return {[=](const SaidElement& said, std::size_t set, std::span<float> costs) {
    const float* wanted = targets[set].values.data();
    for (std::size_t t = 0; t < costs.size(); ++t) {
      double distance = 0;
      for (const float value : said.values) {
        distance += std::abs(static_cast<double>(value) - static_cast<double>(*wanted++));
      }
      const float p = said.probabilities[static_cast<std::size_t>(targets[set].labels[t])];
      costs[t] = static_cast<float>(set_cost_value * distance - set_cost_class * static_cast<double>(p));
    }
  }};
}

Tensor l1_distance(const Tensor& said, const Tensor& wanted) { return ops::sum(ops::abs(said - wanted), {1}); }

SetCriterion::Result SetCriterion::operator()(const models::SetOutputs& said,
                                              std::span<const TargetSet> targets) const {
  const SetSizes sizes = sizes_of_sets(said, targets.size());
  check_targets(targets, sizes);
  std::vector<std::int64_t> counts;
  counts.reserve(targets.size());
  double wanted_elements = 0;
  for (const TargetSet& target : targets) {
    counts.push_back(target.count());
    wanted_elements += static_cast<double>(target.count());
  }
  wanted_elements = std::max(wanted_elements, 1.0);
  Result result;
  result.matches = matcher(said, counts);
  const MatchedPairs pairs = matched_pairs(result.matches, targets, sizes);
  const std::int64_t rows = sizes.sets * sizes.queries;
  const std::int64_t layers = sizes.sets / std::ssize(targets);

  // A weighted mean is a mean of soft targets that are multiplied by their weights. All layers match as many pairs, so
  // that the weights of each have the same sum.
  const std::int64_t nothing = sizes.classes - 1;
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(rows), nothing);
  for (std::size_t i = 0; i < pairs.places.size(); ++i) {
    wanted[static_cast<std::size_t>(pairs.places[i])] = pairs.labels[i];
  }
  const auto matched = static_cast<double>(pairs.places.size());
  const double weight = matched + eos_coef * (static_cast<double>(rows) - matched);
  Tensor soft = Tensor::zeros({rows, sizes.classes});
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t label = wanted[static_cast<std::size_t>(i)];
    const double own = label == nothing ? eos_coef : 1;
    soft.data<float>()[i * sizes.classes + label] = static_cast<float>(own * static_cast<double>(rows) / weight);
  }
  const Tensor logits = ops::reshape(said.logits, {rows, sizes.classes});
  const std::int64_t before = (layers - 1) * std::ssize(targets) * sizes.queries;  // rows of the layers before the last
  result.loss_ce = ops::soft_cross_entropy(logits.detach().narrow(0, before, rows - before),
                                           soft.narrow(0, before, rows - before).contiguous());
  result.loss = ops::soft_cross_entropy(logits, soft) * static_cast<float>(layers);

  result.value_losses.assign(value_losses.size(), Tensor::zeros({}));
  const auto count = static_cast<std::int64_t>(pairs.places.size());
  if (count > 0) {
    const Tensor chosen =
        ops::index_select(ops::reshape(said.values, {rows, sizes.values}), 0, Tensor::from(pairs.places, {count}));
    const Tensor values = Tensor::from(pairs.values, {count, sizes.values});
    const auto share = static_cast<float>(1 / wanted_elements);
    const auto first = static_cast<std::int64_t>(pairs.of_last);
    std::vector<Tensor> distances;
    distances.reserve(value_losses.size());
    for (const ValueLoss& part : value_losses) {
      distances.push_back(part.distance(chosen, values));
    }
    for (std::size_t i = 0; i < distances.size(); ++i) {
      result.value_losses[i] = ops::sum(ops::narrow(distances[i].detach(), 0, first, count - first)) * share;
      result.loss = result.loss + ops::sum(distances[i]) * (share * static_cast<float>(value_losses[i].coef));
    }
  }

  const std::vector<std::int64_t> classes = likeliest_classes(logits);
  double wrong = 0;
  for (std::size_t i = pairs.of_last; i < pairs.places.size(); ++i) {
    wrong += classes[static_cast<std::size_t>(pairs.places[i])] == pairs.labels[i] ? 0 : 1;
  }
  const std::size_t last_pairs = pairs.places.size() - pairs.of_last;
  result.class_error = last_pairs == 0 ? 100 : 100 * wrong / static_cast<double>(last_pairs);
  for (std::size_t b = 0; b < targets.size(); ++b) {
    const auto begin = classes.begin() + before + static_cast<std::int64_t>(b) * sizes.queries;
    const auto found = std::count_if(begin, begin + sizes.queries, [&](std::int64_t c) { return c != nothing; });
    result.cardinality_error +=
        std::abs(static_cast<double>(found - targets[b].count())) / static_cast<double>(targets.size());
  }
  return result;
}

}  // namespace vitrail::train
