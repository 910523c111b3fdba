/// \file
/// The loss of a set of predictions: which of them stands for which object, and how far it is from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/models/detection/detr.h"
#include "vitrail/train/sets/set_criterion.h"

namespace vitrail::train {

/// The objects of an image: what each query of a detector is to find.
struct ObjectSet {
  std::vector<std::int64_t> labels;  ///< their classes
  std::vector<data::Box> boxes;      ///< relative to the size of the image, 0 … 1
};

/// What a pair of a prediction and an object costs, by the names of facebookresearch/detr's flags:
///
/// ```text
/// - set_cost_class · p(class of the object) + set_cost_bbox · |b - b'|₁ - set_cost_giou · GIoU(b, b')
/// ```
///
/// with the probability, not its logarithm, and the sum of the four differences of (cx, cy, w, h).
struct MatchCosts {
  double set_cost_class = 1;
  double set_cost_bbox = 5;
  double set_cost_giou = 2;
};

/// For each set of predictions, the queries (rows) that stand for its objects (columns), at the least cost in all. If
/// there are more objects than queries, some have none. Set s of the predictions is for the objects s mod
/// targets.size(), as where each layer of a decoder predicts.
std::vector<Assignment> match(const models::SetPredictions& predictions, std::span<const ObjectSet> targets,
                              const MatchCosts& costs = {});

/// The weights of the parts of the loss, by the names of facebookresearch/detr's flags.
struct SetLossWeights {
  double bbox_loss_coef = 5;
  double giou_loss_coef = 2;
  double eos_coef = 0.1;  ///< of "no object" in the cross-entropy
};

/// The loss and its parts, each a scalar f32, and figures about the predictions.
struct SetLoss {
  Tensor loss;  ///< loss_ce + bbox_loss_coef · loss_bbox + giou_loss_coef · loss_giou, added up over the layers
  Tensor loss_ce;
  Tensor loss_bbox;
  Tensor loss_giou;
  // The parts and these figures are of the last layer:
  double class_error = 0;        ///< % of the matched queries whose likeliest class is not the object's
  double cardinality_error = 0;  ///< by how many the queries that are not "no object" miss the number of objects
};

/// The loss of DETR (Carion et al. 2020, eq. 2 to 5; facebookresearch/detr, SetCriterion). With
/// the queries matched anew for each layer,
///
/// ```text
/// loss_ce   = Σ w · -log p(class) / Σ w       over all queries, w = eos_coef where the class is "no object"
/// loss_bbox = Σ |b - b'|₁ / n,   loss_giou = Σ (1 - GIoU(b, b')) / n      over the matched ones
/// ```
///
/// where n is the number of objects in the batch, at least 1. The predictions are those of one or more layers, the last
/// one at the end, each of targets.size() sets. Throws Error if they are not, or if a class is none of the
/// predictions'.
SetLoss set_loss(const models::SetPredictions& predictions, std::span<const ObjectSet> targets,
                 const MatchCosts& costs = {}, const SetLossWeights& weights = {});

}  // namespace vitrail::train
