#include "vitrail/train/sets/sets.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {
namespace {

constexpr std::size_t shown_sets = 12;

double value_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

std::span<const float> values_of(const TargetSet& set, std::int64_t i) {
  const auto size = set.values.size() / set.labels.size();
  return std::span(set.values).subspan(static_cast<std::size_t>(i) * size, size);
}

// The assignment of elements to targets, at the least sum of distances; those of other classes cost more than any.
Assignment nearest(const std::vector<const FoundElement*>& elements, const TargetSet& wanted, bool by_class) {
  constexpr double other_class = 1e6;
  std::vector<float> costs;
  costs.reserve(elements.size() * wanted.labels.size());
  for (const FoundElement* element : elements) {
    for (std::int64_t t = 0; t < wanted.count(); ++t) {
      const bool alike = !by_class || element->label == wanted.labels[static_cast<std::size_t>(t)];
      costs.push_back(
          static_cast<float>((alike ? 0 : other_class) + value_distance(element->values, values_of(wanted, t))));
    }
  }
  return assign(costs, std::ssize(elements), wanted.count());
}

// A set, and what was found in it.
void put_shown(dist::Packer& packer, const data::SetExample& example, const std::vector<FoundElement>& found) {
  packer.put_all(example.elements);
  packer.put_all(example.labels);
  packer.put_all(example.values);
  packer.put(std::ssize(found));
  for (const FoundElement& element : found) {
    packer.put(element.label);
    packer.put(element.score);
    packer.put(element.said);
    packer.put_all(element.values);
    packer.put(element.query);
  }
}

void get_shown(dist::Unpacker& unpacker, SetEvaluation& evaluation) {
  data::SetExample& example = evaluation.shown.emplace_back();
  example.elements = unpacker.get_all<float>();
  example.labels = unpacker.get_all<std::int64_t>();
  example.values = unpacker.get_all<float>();
  std::vector<FoundElement>& found = evaluation.found.emplace_back();
  for (auto left = unpacker.get<std::ptrdiff_t>(); left > 0; --left) {
    FoundElement& element = found.emplace_back();
    element.label = unpacker.get<std::int64_t>();
    element.score = unpacker.get<double>();
    element.said = unpacker.get<bool>();
    element.values = unpacker.get_all<float>();
    element.query = unpacker.get<std::int64_t>();
  }
}

}  // namespace

std::vector<TargetSet> targets_of(const data::SetBatch& batch) {
  std::vector<TargetSet> targets;
  targets.reserve(batch.examples.size());
  for (const data::SetExample& example : batch.examples) {
    targets.push_back({example.labels, example.values});
  }
  return targets;
}

SetCriterion set_criterion(std::span<const TargetSet> targets, const SetWeights& weights) {
  return {weights.no_matching ? Matcher{} : value_matcher(targets, weights.set_cost_class, weights.set_cost_value),
          {{weights.value_loss_coef, l1_distance}},
          weights.eos_coef};
}

std::vector<std::vector<FoundElement>> found_elements(const models::SetOutputs& said) {
  const Tensor probabilities = ops::softmax(said.logits.detach(), 2).contiguous();
  const Tensor values = said.values.detach().contiguous();
  const std::int64_t classes = probabilities.size(2);
  const std::int64_t size = values.size(2);
  std::vector<std::vector<FoundElement>> result(static_cast<std::size_t>(probabilities.size(0)));
  const float* p = probabilities.data<float>();
  const float* v = values.data<float>();
  for (std::vector<FoundElement>& found : result) {
    for (std::int64_t q = 0; q < probabilities.size(1); ++q, p += classes, v += size) {
      const float* likeliest = std::max_element(p, p + classes - 1);
      found.push_back({.label = likeliest - p,
                       .score = static_cast<double>(*likeliest),
                       .said = *likeliest >= p[classes - 1],
                       .values = {v, v + size},
                       .query = q});
    }
  }
  return result;
}

std::vector<FoundElement> said_elements(const std::vector<FoundElement>& found) {
  std::vector<FoundElement> said;
  std::ranges::copy_if(found, std::back_inserter(said), &FoundElement::said);
  std::ranges::stable_sort(said, [](const FoundElement& a, const FoundElement& b) {
    return std::tie(a.label, a.values) < std::tie(b.label, b.values);
  });
  return said;
}

SetScore score_of(const std::vector<FoundElement>& found, const TargetSet& wanted, double tolerance) {
  std::vector<const FoundElement*> said;
  std::vector<const FoundElement*> likeliest;
  for (const FoundElement& element : found) {
    likeliest.push_back(&element);
    if (element.said) {
      said.push_back(&element);
    }
  }
  SetScore score;
  score.right_size = std::ssize(said) == wanted.count();
  if (wanted.count() == 0) {
    score.right = score.right_size;
    return score;
  }
  if (score.right_size) {
    const Assignment pairs = nearest(said, wanted, true);
    score.right = true;
    for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
      const FoundElement& element = *said[static_cast<std::size_t>(pairs.rows[i])];
      const auto wanted_values = values_of(wanted, pairs.columns[i]);
      score.right = score.right && element.label == wanted.labels[static_cast<std::size_t>(pairs.columns[i])];
      for (std::size_t k = 0; k < wanted_values.size(); ++k) {
        score.right = score.right && std::abs(static_cast<double>(element.values[k]) -
                                              static_cast<double>(wanted_values[k])) <= tolerance;
      }
    }
  }
  std::ranges::stable_sort(likeliest, std::greater{}, [](const FoundElement* element) { return element->score; });
  likeliest.resize(std::min(likeliest.size(), wanted.labels.size()));
  const Assignment pairs = nearest(likeliest, wanted, false);
  for (std::size_t i = 0; i < pairs.rows.size(); ++i) {
    score.distance +=
        value_distance(likeliest[static_cast<std::size_t>(pairs.rows[i])]->values, values_of(wanted, pairs.columns[i]));
  }
  score.distance /= static_cast<double>(std::max<std::size_t>(pairs.rows.size(), 1));
  return score;
}

std::vector<FigureKind> set_figures() {
  return {accuracy_figure("right", "right sets", "% of the sets"),
          accuracy_figure("size", "right size", "% of the sets"),
          {.name = "distance",
           .label = "mean distance",
           .decimals = 4,
           .chart = "Distance from the targets",
           .axis = "mean distance"},
          loss_figure("loss of all layers")};
}

SetEvaluation evaluate_sets(const models::Set2Set& net, const data::Sets& data, const SetRunOptions& options) {
  const autograd::NoGrad no_grad;
  data::LoaderOptions loading;
  loading.batch_size = options.batch_size;
  loading.workers = options.workers;
  const auto loader = data::set_loader(data, loading);
  SetEvaluation result;
  double right = 0;
  double counted = 0;
  double distance = 0;
  double loss = 0;
  std::int64_t with_targets = 0;
  const auto judge = [&](const data::SetBatch& batch, dist::Packer& packer) {
    nn::Pass pass{.dtype = options.dtype};
    const models::SetInput input{batch.x, batch.mask};
    const models::SetOutputs layers = options.aux_loss ? net.forward_layers(input, pass) : net.forward(input, pass);
    const std::vector<TargetSet> targets = targets_of(batch);
    const auto sets = std::ssize(targets);
    packer.put(set_criterion(targets, options.weights)(layers, targets).loss.item());
    packer.put(sets);
    const auto last = [&](const Tensor& x) { return x.narrow(0, x.size(0) - sets, sets); };
    const std::vector<std::vector<FoundElement>> found = found_elements({last(layers.logits), last(layers.values)});
    for (std::size_t i = 0; i < targets.size(); ++i) {
      packer.put(score_of(found[i], targets[i], options.tolerance));
      packer.put(targets[i].count() > 0);
      const bool is_shown = static_cast<std::size_t>(batch.number * options.batch_size) + i < shown_sets;
      packer.put(is_shown);
      if (is_shown) {
        put_shown(packer, batch.examples[i], found[i]);
      }
    }
    return sets;
  };
  const auto take = [&](dist::Unpacker& unpacker) {
    const auto of_batch = unpacker.get<float>();
    const auto sets = unpacker.get<std::ptrdiff_t>();
    loss += static_cast<double>(of_batch) * static_cast<double>(sets);
    for (std::ptrdiff_t i = 0; i < sets; ++i) {
      const auto score = unpacker.get<SetScore>();
      right += score.right ? 1 : 0;
      counted += score.right_size ? 1 : 0;
      distance += score.distance;
      with_targets += unpacker.get<bool>() ? 1 : 0;
      if (unpacker.get<bool>()) {
        get_shown(unpacker, result);
      }
    }
    result.count += sets;
  };
  const auto progress = [&](std::int64_t done, std::int64_t) {
    if (options.progress) {
      options.progress(done);
    }
  };
  share_batches<data::SetBatch>(*loader, {options.ranks, progress, data.count}, judge, take);
  const auto all = static_cast<double>(result.count);
  result.figures = {{"right", 100 * right / all},
                    {"size", 100 * counted / all},
                    {"distance", distance / static_cast<double>(std::max<std::int64_t>(with_targets, 1))},
                    {"loss", loss / all}};
  return result;
}

}  // namespace vitrail::train
