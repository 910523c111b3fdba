#include "vitrail/train/detection/criterion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

using data::Box;

// The numbers of sets, of their queries, and of classes with "no object".
struct Sizes {
  std::int64_t sets;
  std::int64_t queries;
  std::int64_t classes;
};

Sizes sizes_of(const models::SetPredictions& predictions, std::span<const ObjectSet> targets) {
  const Tensor& logits = predictions.logits;
  check(logits.rank() == 3 && predictions.boxes.shape() == Shape({logits.size(0), logits.size(1), 4}),
        "predictions are logits [S, Q, C] and boxes [S, Q, 4], not {} and {}", logits.shape(),
        predictions.boxes.shape());
  check(!targets.empty() && logits.size(0) % std::ssize(targets) == 0,
        "{} sets of predictions are no whole number of layers for {} images", logits.size(0), targets.size());
  for (const ObjectSet& target : targets) {
    check(target.labels.size() == target.boxes.size(), "an image has {} labels, but {} boxes", target.labels.size(),
          target.boxes.size());
    for (const std::int64_t label : target.labels) {
      check(label >= 0 && label < logits.size(2) - 1, "an object is of class {}, expected 0 … {}", label,
            logits.size(2) - 2);
    }
  }
  return {logits.size(0), logits.size(1), logits.size(2)};
}

// The probabilities of a row of logits.
void softmax_row(std::span<const float> logits, std::vector<float>& probabilities) {
  const float most = *std::ranges::max_element(logits);
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

double centre_distance(const Box& a, const Box& b) {
  return (std::abs(a.x0 + a.x1 - b.x0 - b.x1) + std::abs(a.y0 + a.y1 - b.y0 - b.y1)) / 2 +
         std::abs(a.width() - b.width()) + std::abs(a.height() - b.height());
}

// The product of the two columns of x [N, 2].
Tensor product(const Tensor& x) { return ops::select(x, 1, 0) * ops::select(x, 1, 1); }

Tensor positive(const Tensor& x) { return ops::clamp(x, 0, std::numeric_limits<float>::infinity()); }

// 1 - GIoU of boxes [N, 4] as (cx, cy, w, h), [N].
Tensor giou_distance(const Tensor& predicted, const Tensor& wanted) {
  const auto low = [](const Tensor& b) { return ops::narrow(b, 1, 0, 2) - ops::narrow(b, 1, 2, 2) * 0.5F; };
  const auto high = [](const Tensor& b) { return ops::narrow(b, 1, 0, 2) + ops::narrow(b, 1, 2, 2) * 0.5F; };
  const Tensor a0 = low(predicted);
  const Tensor a1 = high(predicted);
  const Tensor b0 = low(wanted);
  const Tensor b1 = high(wanted);
  const Tensor both = product(positive(ops::minimum(a1, b1) - ops::maximum(a0, b0)));
  const Tensor covered = product(a1 - a0) + product(b1 - b0) - both;
  const Tensor hull = product(positive(ops::maximum(a1, b1) - ops::minimum(a0, b0)));
  return ops::negative(both / covered - (hull - covered) / hull) + 1.0F;
}

// Everything about the matched pairs of all sets.
struct Pairs {
  std::vector<std::int64_t> places;  // of the queries among those of all sets
  std::vector<std::int64_t> labels;
  std::vector<float> boxes;  // (cx, cy, w, h) of the objects
  std::size_t of_last = 0;   // where the pairs of the last layer begin
};

Pairs pairs_of(const std::vector<Assignment>& matches, std::span<const ObjectSet> targets, const Sizes& sizes) {
  Pairs pairs;
  for (std::size_t s = 0; s < matches.size(); ++s) {
    if (s + targets.size() == matches.size()) {
      pairs.of_last = pairs.places.size();
    }
    const ObjectSet& target = targets[s % targets.size()];
    for (std::size_t i = 0; i < matches[s].rows.size(); ++i) {
      const auto object = static_cast<std::size_t>(matches[s].columns[i]);
      pairs.places.push_back(static_cast<std::int64_t>(s) * sizes.queries + matches[s].rows[i]);
      pairs.labels.push_back(target.labels[object]);
      const Box& box = target.boxes[object];
      for (const double number : {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.width(), box.height()}) {
        pairs.boxes.push_back(static_cast<float>(number));
      }
    }
  }
  return pairs;
}

// The likeliest class of each query, of logits [S · Q, C].
std::vector<std::int64_t> likeliest(const Tensor& logits) {
  const Tensor indices = ops::argmax(logits.detach(), 1);
  const auto all = indices.span<std::int64_t>();
  return {all.begin(), all.end()};
}

}  // namespace

std::vector<Assignment> match(const models::SetPredictions& predictions, std::span<const ObjectSet> targets,
                              const MatchCosts& costs) {
  const Sizes sizes = sizes_of(predictions, targets);
  const Tensor logits = predictions.logits.detach().contiguous();
  const Tensor boxes = predictions.boxes.detach().contiguous();
  const std::span<const float> all_logits = logits.span<float>();
  const std::span<const float> all_boxes = boxes.span<float>();
  std::vector<Assignment> result;
  std::vector<float> probabilities;
  std::vector<float> matrix;
  for (std::int64_t s = 0; s < sizes.sets; ++s) {
    const ObjectSet& target = targets[static_cast<std::size_t>(s) % targets.size()];
    matrix.clear();
    for (std::int64_t q = s * sizes.queries; q < (s + 1) * sizes.queries && !target.labels.empty(); ++q) {
      const auto classes = static_cast<std::size_t>(sizes.classes);
      softmax_row(all_logits.subspan(static_cast<std::size_t>(q) * classes, classes), probabilities);
      const float* b = all_boxes.data() + q * 4;
      const Box box = data::centred_box(b[0], b[1], b[2], b[3]);
      for (std::size_t i = 0; i < target.labels.size(); ++i) {
        const double cost = costs.set_cost_bbox * centre_distance(box, target.boxes[i]) -
                            costs.set_cost_class * probabilities[static_cast<std::size_t>(target.labels[i])] -
                            costs.set_cost_giou * data::generalized_iou(box, target.boxes[i]);
        matrix.push_back(static_cast<float>(cost));
      }
    }
    result.push_back(assign(matrix, target.labels.empty() ? 0 : sizes.queries, std::ssize(target.labels)));
  }
  return result;
}

SetLoss set_loss(const models::SetPredictions& predictions, std::span<const ObjectSet> targets, const MatchCosts& costs,
                 const SetLossWeights& weights) {
  const Sizes sizes = sizes_of(predictions, targets);
  const Pairs pairs = pairs_of(match(predictions, targets, costs), targets, sizes);
  const std::int64_t rows = sizes.sets * sizes.queries;
  const std::int64_t layers = sizes.sets / std::ssize(targets);
  double objects = 0;
  for (const ObjectSet& target : targets) {
    objects += static_cast<double>(target.labels.size());
  }
  objects = std::max(objects, 1.0);

  // A weighted mean is a mean of soft targets that are multiplied by their weights. All layers match as many pairs, so
  // that the weights of each have the same sum.
  const std::int64_t nothing = sizes.classes - 1;
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(rows), nothing);
  for (std::size_t i = 0; i < pairs.places.size(); ++i) {
    wanted[static_cast<std::size_t>(pairs.places[i])] = pairs.labels[i];
  }
  const auto matched = static_cast<double>(pairs.places.size());
  const double weight = matched + weights.eos_coef * (static_cast<double>(rows) - matched);
  Tensor soft = Tensor::zeros({rows, sizes.classes});
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t label = wanted[static_cast<std::size_t>(i)];
    const double own = label == nothing ? weights.eos_coef : 1;
    soft.data<float>()[i * sizes.classes + label] = static_cast<float>(own * static_cast<double>(rows) / weight);
  }
  const Tensor logits = ops::reshape(predictions.logits, {rows, sizes.classes});

  SetLoss result;
  const std::int64_t before = (layers - 1) * std::ssize(targets) * sizes.queries;  // rows of the layers before the last
  result.loss_ce = ops::soft_cross_entropy(logits.detach().narrow(0, before, rows - before),
                                           soft.narrow(0, before, rows - before).contiguous());
  result.loss = ops::soft_cross_entropy(logits, soft) * static_cast<float>(layers);
  result.loss_bbox = Tensor::zeros({});
  result.loss_giou = Tensor::zeros({});
  const auto count = static_cast<std::int64_t>(pairs.places.size());
  if (count > 0) {
    const Tensor chosen =
        ops::index_select(ops::reshape(predictions.boxes, {rows, 4}), 0, Tensor::from(pairs.places, {count}));
    const Tensor boxes = Tensor::from(pairs.boxes, {count, 4});
    const Tensor distances = ops::sum(ops::abs(chosen - boxes), {1});
    const Tensor overlaps = giou_distance(chosen, boxes);
    const auto share = static_cast<float>(1 / objects);
    const auto first = static_cast<std::int64_t>(pairs.of_last);
    const auto of_last = [&](const Tensor& all) { return ops::sum(ops::narrow(all, 0, first, count - first)) * share; };
    result.loss_bbox = of_last(distances.detach());
    result.loss_giou = of_last(overlaps.detach());
    result.loss = result.loss + ops::sum(distances) * (share * static_cast<float>(weights.bbox_loss_coef)) +
                  ops::sum(overlaps) * (share * static_cast<float>(weights.giou_loss_coef));
  }

  const std::vector<std::int64_t> said = likeliest(logits);
  double wrong = 0;
  for (std::size_t i = pairs.of_last; i < pairs.places.size(); ++i) {
    wrong += said[static_cast<std::size_t>(pairs.places[i])] == pairs.labels[i] ? 0 : 1;
  }
  const std::size_t last_pairs = pairs.places.size() - pairs.of_last;
  result.class_error = last_pairs == 0 ? 100 : 100 * wrong / static_cast<double>(last_pairs);
  for (std::size_t b = 0; b < targets.size(); ++b) {
    const auto begin = said.begin() + before + static_cast<std::int64_t>(b) * sizes.queries;
    const auto found = std::count_if(begin, begin + sizes.queries, [&](std::int64_t c) { return c != nothing; });
    result.cardinality_error +=
        std::abs(static_cast<double>(found - std::ssize(targets[b].labels))) / static_cast<double>(targets.size());
  }
  return result;
}

}  // namespace vitrail::train
