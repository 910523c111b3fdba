#include "vitrail/train/detection/criterion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

using data::Box;

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

// The matcher of objects, which must outlive it.
Matcher object_matcher(std::span<const ObjectSet> targets, const MatchCosts& costs) {
  return {[targets, costs](const SaidElement& said, std::size_t set, std::span<float> of_pairs) {
    const std::span<const float> b = said.values;
    const Box box = data::centred_box(b[0], b[1], b[2], b[3]);
    const ObjectSet& target = targets[set];
    for (std::size_t i = 0; i < of_pairs.size(); ++i) {
      const double cost = costs.set_cost_bbox * centre_distance(box, target.boxes[i]) -
                          costs.set_cost_class * said.probabilities[static_cast<std::size_t>(target.labels[i])] -
                          costs.set_cost_giou * data::generalized_iou(box, target.boxes[i]);
      of_pairs[i] = static_cast<float>(cost);
    }
  }};
}

// Throws Error unless each object has a box and one of the classes that the predictions know.
void check_objects(std::span<const ObjectSet> targets, const models::SetPredictions& predictions) {
  check(predictions.boxes.rank() == 3 && predictions.boxes.size(2) == 4 && predictions.logits.rank() == 3,
        "predictions are logits [S, Q, C] and boxes [S, Q, 4], not {} and {}", predictions.logits.shape(),
        predictions.boxes.shape());
  const std::int64_t classes = predictions.logits.size(2) - 1;
  for (const ObjectSet& target : targets) {
    check(target.labels.size() == target.boxes.size(), "an image has {} labels, but {} boxes", target.labels.size(),
          target.boxes.size());
    for (const std::int64_t label : target.labels) {
      check(label >= 0 && label < classes, "an object is of class {}, expected 0 … {}", label, classes - 1);
    }
  }
}

// The objects with their boxes as (cx, cy, w, h).
std::vector<TargetSet> target_sets(std::span<const ObjectSet> objects) {
  std::vector<TargetSet> result;
  result.reserve(objects.size());
  for (const ObjectSet& set : objects) {
    TargetSet& target = result.emplace_back();
    target.labels = set.labels;
    target.values.reserve(4 * set.boxes.size());
    for (const Box& box : set.boxes) {
      for (const double number : {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.width(), box.height()}) {
        target.values.push_back(static_cast<float>(number));
      }
    }
  }
  return result;
}

}  // namespace

std::vector<Assignment> match(const models::SetPredictions& predictions, std::span<const ObjectSet> targets,
                              const MatchCosts& costs) {
  check_objects(targets, predictions);
  std::vector<std::int64_t> counts;
  counts.reserve(targets.size());
  for (const ObjectSet& target : targets) {
    counts.push_back(std::ssize(target.labels));
  }
  return object_matcher(targets, costs)({predictions.logits, predictions.boxes}, counts);
}

SetLoss set_loss(const models::SetPredictions& predictions, std::span<const ObjectSet> targets, const MatchCosts& costs,
                 const SetLossWeights& weights) {
  check_objects(targets, predictions);
  const SetCriterion criterion{object_matcher(targets, costs),
                               {{weights.bbox_loss_coef, l1_distance}, {weights.giou_loss_coef, giou_distance}},
                               weights.eos_coef};
  const SetCriterion::Result found = criterion({predictions.logits, predictions.boxes}, target_sets(targets));
  return {found.loss,        found.loss_ce,          found.value_losses[0], found.value_losses[1],
          found.class_error, found.cardinality_error};
}

}  // namespace vitrail::train
