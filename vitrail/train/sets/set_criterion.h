/// \file
/// Sets of predictions against sets of targets: which prediction stands for which target, and how far it is from it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vitrail/models/detection/detr_transformer.h"
#include "vitrail/train/sets/assignment.h"

namespace vitrail::train {

/// What a set of predictions is to be, in any order.
struct TargetSet {
  std::vector<std::int64_t> labels;  ///< [N], the classes of its elements
  std::vector<float> values;         ///< [N, V], their numbers

  std::int64_t count() const { return std::ssize(labels); }
};

/// What one query says.
struct SaidElement {
  std::span<const float> probabilities;  ///< [C + 1], of the classes and of "nothing"
  std::span<const float> values;         ///< [V]
};

/// Writes into `costs` [N] what it costs that a prediction stands for each target of a set; `set` is the number of that
/// set among the sets of targets.
using ElementCosts = std::function<void(const SaidElement& said, std::size_t set, std::span<float> costs)>;

/// Gives the predictions of sets to their targets.
struct Matcher {
  /// What pairs cost. Without it nothing is matched: query i stands for target i, in the order in which the targets
  /// come.
  ElementCosts costs = {};

  /// For each set of predictions, the queries (rows) that stand for its targets (columns), at the least cost in all
  /// (facebookresearch/detr, HungarianMatcher). If there are more targets than queries, some have none. Set s of the
  /// predictions is for the targets s mod counts.size(), of which there are counts[s mod counts.size()], as where each
  /// layer of a decoder predicts. Throws Error if the shapes do not fit.
  std::vector<Assignment> operator()(const models::SetOutputs& said, std::span<const std::int64_t> counts) const;
};

/// The matcher by which a pair costs `set_cost_value` · |v - v'|₁ - `set_cost_class` · p(class of the target). The
/// targets must outlive it.
Matcher value_matcher(std::span<const TargetSet> targets, double set_cost_class = 1, double set_cost_value = 5);

/// A part of the loss: how far the values of matched predictions [M, V] are from those of their targets [M, V], each
/// of the M distances, and its weight in the loss.
struct ValueLoss {
  double coef = 1;
  std::function<Tensor(const Tensor& said, const Tensor& wanted)> distance;
};
/// |v - v'|₁ of each row, [M, V] and [M, V] → [M].
Tensor l1_distance(const Tensor& said, const Tensor& wanted);

/// The loss of sets (Carion et al. 2020, eq. 2; facebookresearch/detr, SetCriterion). With the queries matched anew for
/// each layer that predicts,
///
/// ```text
/// loss_ce = Σ w · -log p(class) / Σ w     over all queries, w = eos_coef where the class is "nothing"
/// loss_v  = Σ distance_v / n              over the matched ones, for each of the value losses
/// loss    = Σ over layers (loss_ce + Σ_v coef_v · loss_v)
/// ```
///
/// where n is the number of targets in the batch, at least 1.
struct SetCriterion {
  Matcher matcher = {};
  std::vector<ValueLoss> value_losses = {};
  double eos_coef = 0.1;

  /// The loss and its parts, each a scalar f32, and figures about the predictions.
  struct Result {
    Tensor loss;  ///< added up over the layers
    // Of the last layer:
    Tensor loss_ce;
    std::vector<Tensor> value_losses;  ///< without their weights
    double class_error = 0;            ///< % of the matched queries whose likeliest class is not the target's
    double cardinality_error = 0;      ///< by how many the queries that say something miss the number of targets
    std::vector<Assignment> matches;   ///< of all layers
  };
  /// The predictions are those of one or more layers, the last one at the end, each of targets.size() sets. Throws
  /// Error if they are not, or if a class is none of the predictions'.
  Result operator()(const models::SetOutputs& said, std::span<const TargetSet> targets) const;
};

}  // namespace vitrail::train
