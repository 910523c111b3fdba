/// \file
/// What a network says about sets, and how good it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/data/sets/sets.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/models/detection/set2set.h"
#include "vitrail/train/figures.h"
#include "vitrail/train/sets/set_criterion.h"

namespace vitrail::train {

/// The loss of sets by the names of its flags, which are facebookresearch/detr's where it has them.
struct SetWeights {
  double set_cost_class = 1;  ///< in the matching
  double set_cost_value = 5;  ///< likewise, of the values' L1 distance
  double value_loss_coef = 5;
  double eos_coef = 1;  ///< DETR has 0.1, since most of its queries are "nothing": here there are few more than targets
  bool no_matching = false;  ///< query i is target i, in the order in which the targets come
};

/// The targets of a batch.
std::vector<TargetSet> targets_of(const data::SetBatch& batch);
/// The criterion for these targets, which must outlive it, with the L1 distance of values.
SetCriterion set_criterion(std::span<const TargetSet> targets, const SetWeights& weights);

/// An element that a network says is in a set.
struct FoundElement {
  std::int64_t label = 0;  ///< its likeliest class other than "nothing"
  double score = 0;        ///< the probability of that class
  bool said = false;       ///< whether no class, nor "nothing", is likelier
  std::vector<float> values;
  std::int64_t query = 0;
};

/// What all queries say of each set, in order.
std::vector<std::vector<FoundElement>> found_elements(const models::SetOutputs& said);
/// Those that are said to be there, by their classes, and of one class by their numbers.
std::vector<FoundElement> said_elements(const std::vector<FoundElement>& found);

/// How near what was found comes to what it should be, whatever the order.
struct SetScore {
  bool right = false;       ///< there is as much as there should be, each of its class and within the tolerance
  bool right_size = false;  ///< there is as much as there should be
  double distance = 0;      ///< mean Euclidean distance of the values of all targets from those of the likeliest
                            ///< queries, as many as there are targets, matched at the least distance in all
};
SetScore score_of(const std::vector<FoundElement>& found, const TargetSet& wanted, double tolerance);

/// How a network is run over sets.
struct SetRunOptions {
  std::int64_t batch_size = 64;
  DType dtype = DType::f32;
  int workers = 1;
  double tolerance = 0.05;
  SetWeights weights = {};
  bool aux_loss = true;
  std::function<void(std::int64_t done)> progress = {};  ///< called after each batch
  dist::Communicator* ranks = nullptr;                   ///< that share the batches; null: this process has all
};

/// Sets with what was found in them, and how good it is.
struct SetEvaluation {
  std::int64_t count = 0;
  Figures figures;                               ///< those of set_figures()
  std::vector<data::SetExample> shown;           ///< the first of the data set
  std::vector<std::vector<FoundElement>> found;  ///< in these
};
/// The kinds of the figures: "right", % of them that are right; "size", % of them with as many elements as there should
/// be; "distance"; "loss".
std::vector<FigureKind> set_figures();
/// Runs the network over all sets, which have targets.
SetEvaluation evaluate_sets(const models::Set2Set& net, const data::Sets& data, const SetRunOptions& options);

/// What was found in the first sets as SVG. Sets in a plane are drawn as points, with a ring for each target and a
/// cross for each element that was found; of others, each target is a ring and each element a cross at its first
/// number, in the column of its class.
std::string sets_svg(const SetEvaluation& evaluation, std::int64_t input_size, std::int64_t output_size);

}  // namespace vitrail::train
